"""Four models at the paper's full settings: loss, D_stsp beside its floor, largest Lyapunov exponent, time.

    python benchmarks/paper_training.py --runs build/paper_training --write docs/training.md

Lorenz-63 with process and observation noise 0.1, tau 16, 100,000 updates, seeds 0 to 3. Each model keeps its
state in the folder of runs, so the command continues where it stopped. Prints the table, and puts it between
the marks in the given document.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from document import publish

from palrnn.data import Standardizer, add_observation_noise, lorenz63, train_test_split
from palrnn.engine.progress import lines
from palrnn.forcing import Evaluation, TrainConfig, TrainResult, free_running_evaluation, train_many
from palrnn.invariants import Floor, dstsp_floor
from palrnn.model import ALRNN

BEGIN, END = "<!-- table of benchmarks/paper_training.py -->", "<!-- end of table -->"
DT, NOISE, STEPS, TEST = 0.01, 0.1, 100_000, 0.2
FREE_STEPS, DISCARD, LONG_STEPS, PAIRS = 10_000, 1000, 100_000, 50
SEEDS, STARTS = range(4), range(0, 11_000, 1000)


@dataclass(frozen=True, eq=False)
class Reference:
    """A true series (T, 3), standardised, and the D_stsp between stretches of its system."""

    name: str
    x: np.ndarray
    floor: Floor


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("build/paper_training"), help="where models are kept"
    )
    parser.add_argument("--workers", type=int, default=2, help="models trained side by side")
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    chosen = parser.parse_args()
    clean = lorenz63(STEPS, dt=DT, process_std=NOISE, discard=10_000, seed=0)
    truth, test = train_test_split(clean, TEST)
    seen = add_observation_noise(truth, NOISE, scale=truth.std(axis=0), seed=1)
    standardizer = Standardizer.fit(seen)
    heldout = standardizer.transform(test)
    results = train_many(
        standardizer.transform(seen),
        [TrainConfig.paper(seed=seed) for seed in SEEDS],
        workers=chosen.workers,
        runs=[chosen.runs / f"seed-{seed}" for seed in SEEDS],
        standardizer=standardizer,
        dt=DT,
        progress=lines("training"),
    )
    noisy = Reference("held-out", heldout, dstsp_floor(truth, length=FREE_STEPS - DISCARD, pairs=PAIRS))
    still = lorenz63(STEPS, dt=DT, discard=10_000, seed=2)
    quiet = Reference(
        "deterministic",
        standardizer.transform(still),
        dstsp_floor(still, length=FREE_STEPS - DISCARD, pairs=PAIRS),
    )
    text = table(
        [row(seed, result, noisy, quiet) for seed, result in zip(SEEDS, results, strict=True)], noisy, quiet
    )
    publish(text, chosen.write, BEGIN, END)
    return 0


def row(seed: int, result: TrainResult, noisy: Reference, quiet: Reference) -> list[str]:
    """Return one line of the table.

    Where a free run begins decides which rare bins it meets and for how long it stays chaotic, so a single
    value says little: medians and ranges over several starts.
    """
    model, history = result.model, result.history
    runs = {reference: free_runs(model, reference) for reference in (noisy, quiet)}
    still = sum(stands_still(model, noisy.x[start]) for start in STARTS)
    return [
        str(seed),
        f"{history.seconds.sum():.0f}",
        f"{history.recent_loss():.4f}",
        *(spread([run.dstsp for run in found]) for found in runs.values()),
        spread([run.lyapunov for run in runs[noisy]]),
        f"{still} of {len(STARTS)}",
    ]


def free_runs(model: ALRNN, reference: Reference) -> list[Evaluation]:
    """Measure free runs from several starts in the reference."""
    return [
        free_running_evaluation(model, reference.x[start:], steps=FREE_STEPS, discard=DISCARD, dt=DT)
        for start in STARTS
    ]


def spread(values: Sequence[float]) -> str:
    """Return the median and range of some values."""
    return f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def stands_still(model: ALRNN, x1: np.ndarray) -> bool:
    """Whether a long free run ends on a fixed point."""
    states = np.asarray(model.rollout(x1, 1000, discard=LONG_STEPS - 1000).states)
    return bool(np.ptp(states, axis=0).max() < 1e-6)


def table(rows: list[list[str]], *references: Reference) -> str:
    """Return the table with its floors, as Markdown."""
    names = ["seed", "time, s", "loss", *(f"D_stsp, {reference.name}" for reference in references)]
    names += ["largest exponent", f"still after {LONG_STEPS:,} steps"]
    last = ["true", "", "", *(spread(reference.floor.values) for reference in references), "0.9056", ""]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [names, ["---"] * len(names), *rows, last])


if __name__ == "__main__":
    sys.exit(main())
