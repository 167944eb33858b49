"""Do more smoothing samples make the observed information positive? Up to 65,536 for one model of the zoo.

python benchmarks/paper_negative_directions.py [results/paper]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from palrnn import PALRNN, IndefiniteInformationWarning, load_from_zoo, observed_information
from palrnn.paper.presets import preset_in
from palrnn.paper.series import training_series

LEVEL, PATHS = 0.1, 64
MODEL = f"p{LEVEL}-o{LEVEL}-t16-s0"


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "results/paper"
    preset = preset_in(folder)
    x = training_series(preset.data, LEVEL, LEVEL).test[: preset.gap.length]
    model = PALRNN(load_from_zoo(folder, MODEL).drift, LEVEL, LEVEL, preset.gap.gate_std)
    print("| target | samples | negative directions | missing-information ratio |\n|---|---|---|---|")
    for target in ("paper", "exact"):
        for states in (16, 64, 256, 1024):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IndefiniteInformationWarning)
                found = observed_information(
                    model, x, particles=256, paths=PATHS, states_per_path=states, target=target
                )
            values = np.linalg.eigvalsh(found.observed)
            negative = int((values < -1e-9 * np.abs(values).max()).sum())
            print(
                f"| {target} | {PATHS * states:,} | {negative} of {len(values)} | {found.mir:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
