"""Four models at the paper's full settings: loss, D_stsp beside its floor, largest Lyapunov exponent, time.

    python benchmarks/paper_training.py --runs build/paper_training --write docs/training.md

Lorenz-63 with process and observation noise 0.1, tau 16, 100,000 updates, seeds 0 to 3. Each model keeps its
state in the folder of runs, so the command continues where it stopped. Prints the table, and puts it between
the marks in the given document.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palrnn.data import Standardizer, add_observation_noise, lorenz63, train_test_split
from palrnn.engine.files import write_text
from palrnn.engine.progress import lines
from palrnn.forcing import TrainConfig, TrainResult, free_running_evaluation, train_many
from palrnn.invariants import Floor, dstsp_floor, lyapunov_spectrum
from palrnn.model import ALRNN

BEGIN, END = "<!-- table of benchmarks/paper_training.py -->", "<!-- end of table -->"
DT, NOISE, STEPS, TEST = 0.01, 0.1, 100_000, 0.2
FREE_STEPS, DISCARD, LONG_STEPS, PAIRS = 10_000, 1000, 100_000, 50
SEEDS = range(4)


class Reference(NamedTuple):
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
        [TrainConfig(seed=seed) for seed in SEEDS],
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
    print(text)
    if chosen.write is not None:
        before, _, rest = chosen.write.read_text(encoding="utf-8").partition(BEGIN)
        write_text(chosen.write, f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")
    return 0


def row(seed: int, result: TrainResult, noisy: Reference, quiet: Reference) -> list[str]:
    """Return one line of the table."""
    model, history, x1 = result.model, result.history, noisy.x[0]
    lasts = steps_of_motion(model, x1)
    short = lyapunov_spectrum(model, x1, steps=FREE_STEPS - DISCARD, discard=DISCARD, dt=DT, k=1)
    long = lyapunov_spectrum(model, x1, steps=lasts - DISCARD, discard=DISCARD, dt=DT, k=1)
    return [
        str(seed),
        f"{history.seconds.sum():.0f}",
        f"{history.recent_loss():.4f}",
        *(scores(model, reference) for reference in (noisy, quiet)),
        *(f"{spectrum.largest:.2f} ± {spectrum.stderr[0]:.2f}" for spectrum in (short, long)),
        f"{lasts:,}" if lasts < LONG_STEPS else f"over {LONG_STEPS:,}",
    ]


def scores(model: ALRNN, reference: Reference) -> str:
    """Return the median and range of D_stsp over free runs from several starts.

    Where a run begins decides which rare bins it meets, so a single value says little.
    """
    kept = FREE_STEPS - DISCARD
    found = [
        free_running_evaluation(model, reference.x[start:], steps=FREE_STEPS, discard=DISCARD, dt=DT).dstsp
        for start in range(0, 11_000, 1000)
        if start + kept <= len(reference.x)
    ]
    return f"{np.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def steps_of_motion(model: ALRNN, x1: np.ndarray) -> int:
    """Return after how many steps of a free run the state stands still, or the length of the run."""
    states = np.asarray(model.rollout(x1, LONG_STEPS))
    moving = np.flatnonzero(np.abs(np.diff(states, axis=0)).max(axis=1) > 1e-6)
    return LONG_STEPS if moving[-1] == LONG_STEPS - 2 else int(moving[-1])


def table(rows: list[list[str]], *references: Reference) -> str:
    """Return the table with its floors, as Markdown."""
    names = ["seed", "time, s", "loss", *(f"D_stsp, {reference.name}" for reference in references)]
    names += ["exponent, 9000 steps", "exponent, all steps", "steps of chaos"]
    floors = [f"{r.floor.median:.2f} ({r.floor.low:.2f} to {r.floor.high:.2f})" for r in references]
    last = ["true", "", "", *floors, "0.9056", "0.9056", ""]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [names, ["---"] * len(names), *rows, last])


if __name__ == "__main__":
    sys.exit(main())
