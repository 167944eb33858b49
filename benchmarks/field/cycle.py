"""Where models of Lorenz-96 go, which is a cycle in `dysts`: the table of docs/training.md.

    python -m benchmarks.field.cycle --write docs/training.md

The sampled cycle comes back to nearly the same rows after each turn, so D_stsp, which counts rows in cells,
tells models apart by their phase. Beside it stand how far a model's run is from the cycle itself (the curve,
finely sampled) and how many rows a turn takes. A model takes about a minute. Needs the extra `field`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

import palrnn
from palrnn.data.kernels import simulate
from palrnn.engine.progress import quiet
from palrnn.invariants import spread_starts

from ..document import publish
from .judge import STARTS, scored
from .systems import Flow

FLOW, MODELS, STEPS, LAST, FINE, FINE_ROWS = "Lorenz96", 2, 60_000, 20_000, 100, 10_000
BEGIN, END = "<!-- cycle -->", "<!-- end of cycle -->"


def rows_per_turn(series: np.ndarray) -> float:
    """Return the mean rows of a turn, in which ``series (T,)`` goes up through its mean twice."""
    centred = series - series.mean()
    before = np.flatnonzero((centred[:-1] < 0.0) & (centred[1:] >= 0.0))
    times = before - centred[before] / (centred[before + 1] - centred[before])
    return float(np.diff(times[::2]).mean())


def curve(flow: Flow) -> np.ndarray:
    """Return two turns of the cycle, in steps of a hundredth of a sample's time."""
    states, start = np.empty((FINE_ROWS, flow.rows.shape[1])), flow.rows[-1].copy()
    parameters, none, room = np.array(flow.system.parameters), states[:0], np.empty((5, len(start)))
    simulate(flow.system.field, start, parameters, flow.dt / FINE, none, FINE_ROWS, room, states)
    return states


def measured(flow: Flow, optimizer: str, seed: int) -> tuple[str, ...]:
    """Return a row: whose run, its scores, its distance from the cycle and its rows per turn."""
    result = palrnn.reconstruct(
        flow.rows, dt=flow.dt, test_fraction=0.1, progress=quiet, optimizer=optimizer, seed=seed
    )
    scale = result.standardizer
    model, last = result.drift, flow.rows[-1]
    scores = scored(model, scale, spread_starts(scale.transform(flow.stretches[0]), STARTS), flow.stretches)
    run = np.asarray(model.rollout(scale.transform(last), STEPS).states)[-LAST:, : len(last)]
    distance, _ = cKDTree(scale.transform(curve(flow))).query(run)
    against = f"{scores['dstsp']:.2f}", f"{scores['spectrum_distance']:.3f}"
    places = f"{distance.mean():.3f}", f"{distance.max():.3f}"
    return optimizer, str(seed), *against, *places, f"{rows_per_turn(run[:, 0]):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    chosen = parser.parse_args()
    flow = Flow(FLOW)
    head = ("optimiser", "seed", "D_stsp", "D_H", "from the cycle, mean", "largest", "rows per turn")
    rows = [head, ("---",) * len(head)]
    rows += [measured(flow, optimizer, seed) for optimizer in ("soap", "radam") for seed in range(MODELS)]
    truth = np.concatenate(flow.stretches)
    step = np.linalg.norm(np.diff(truth / truth.std(axis=0), axis=0), axis=1).mean()
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    said = f"The data have {rows_per_turn(flow.stretches[0][:, 0]):.3f} rows per turn, {step:.2f} apart."
    publish(f"{table}\n\n{said}", chosen.write, BEGIN, END)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
