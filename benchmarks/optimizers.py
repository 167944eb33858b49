"""The optimisers side by side: loss under teacher forcing after equally many updates, and the time they take.

    python -m benchmarks.optimizers

Flows of `dysts` (extra: field), 15,000 rows; an AL-RNN of the usual size and a shallow PLRNN, seed 0.
"""

from __future__ import annotations

import argparse
import time

from palrnn import TrainConfig, itf_loss, train
from palrnn.data import Standardizer, suggest_tau
from palrnn.engine.progress import quiet

from .field.systems import Flow

FLOWS, UPDATES = ("NewtonLiepnik", "Thomas"), 6000
FAMILIES = {
    "AL-RNN, M = 60, P = 40": TrainConfig(),
    "shallow, 100 hidden": TrainConfig(family="shallow", hidden=100),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=UPDATES)
    updates = parser.parse_args().updates
    print("| flow | family | RAdam | SOAP | time of SOAP, RAdam = 1 |")
    print("|---|---|---|---|---|")
    for name in FLOWS:
        rows = Flow(name).rows
        x = Standardizer.fit(rows).transform(rows)
        for words, config in FAMILIES.items():
            losses, seconds = {}, {}
            for optimizer in ("radam", "soap"):
                how = config.changed(forcing=suggest_tau(x), optimizer=optimizer, updates=updates)
                train(x, how.changed(updates=10), progress=quiet)  # compiled
                begun = time.perf_counter()
                found = train(x, how, progress=quiet)
                seconds[optimizer] = time.perf_counter() - begun
                losses[optimizer] = itf_loss(found.model, x, found.forcing)
            ratio = seconds["soap"] / seconds["radam"]
            print(
                f"| {name} | {words} | {losses['radam']:.2g} | {losses['soap']:.2g} | {ratio:.2f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
