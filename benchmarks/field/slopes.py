"""Why a model can be at the right places and have wrong exponents, as docs/training.md shows it.

    python -m benchmarks.field.slopes --write docs/training.md

A shallow PLRNN is trained on a flow, and exponents are computed from five sequences of slopes:

- the model's along its own run, which are its exponents;
- the model's along the data;
- the true ones along the data, which give the true exponents, as a check;
- the true ones along the model's run, which tell whether it goes where it should;
- the true ones along the data, with half of the model's error.

Each gives the exponents of the map, and those of growth across the path, which are those of the flow (beside
its zero; `palrnn.lyapunov_spectrum`, ``flow=True``, here once more by projections).

A flow takes about a minute. Needs the extra `field`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import palrnn
from palrnn.data.kernels import simulate
from palrnn.engine.progress import quiet

from ..document import publish
from .systems import SUBSTEPS, Flow

FLOWS = ("Lorenz", "Lorenz84", "Thomas")
HIDDEN, UPDATES, TAU = 100, 20_000, 4
STEPS, ALIGN, APART = 8000, 200, 1e-5
BEGIN, END = "<!-- slopes -->", "<!-- end of slopes -->"


def exponents(slopes: Sequence[np.ndarray], dt: float, path: np.ndarray | None = None) -> np.ndarray:
    """Return all exponents of a product of ``slopes (T, D, D)``, by QR decompositions.

    With the ``path (T, D)`` to which the slopes belong, those of growth across it.
    """
    dim = slopes[0].shape[0]
    along = np.zeros((len(slopes), dim))
    if path is not None:
        v = 8.0 * (path[3:-1] - path[1:-3]) - (path[4:] - path[:-4])
        along[2:-2] = v / np.linalg.norm(v, axis=1, keepdims=True)
    Q, sums = np.eye(dim)[:, int(path is not None) :], 0.0
    for t, slope in enumerate(slopes[:-3]):
        V = slope @ Q
        Q, R = np.linalg.qr(V - np.outer(along[t + 1], along[t + 1] @ V))
        sums = sums + np.log(np.abs(np.diag(R))) * (t >= ALIGN)
    return sums / ((len(slopes) - 3 - ALIGN) * dt)


def true_slopes(flow: Flow, states: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the Jacobians of one sample's time at ``states (T, D)``, in units of ``scale (D,)``."""
    dim = states.shape[1]
    parameters, none, room = np.array(flow.system.parameters), np.empty((0, dim)), np.empty((5, dim))

    def after(state: np.ndarray) -> np.ndarray:
        out = np.empty((SUBSTEPS, dim))
        simulate(flow.system.field, state, parameters, flow.dt / SUBSTEPS, none, SUBSTEPS, room, out)
        return out[-1]

    found = np.empty((len(states), dim, dim))
    for t, state in enumerate(states):
        for j, step in enumerate(APART * np.diag(scale)):
            found[t, :, j] = (after(state + step) - after(state - step)) / (2.0 * APART * scale)
    return found


def measured(name: str) -> list[tuple[str, str, str, str]]:
    """Return a row for each sequence of slopes: the flow, whose they are, and the exponents, twice."""
    flow = Flow(name)
    how = {"family": "shallow", "hidden": HIDDEN, "tau": TAU, "updates": UPDATES, "input_noise": 0.0}
    result = palrnn.reconstruct(flow.rows, dt=flow.dt, test_fraction=0.1, progress=quiet, **how)
    scale, model = result.standardizer, result.drift
    seen = flow.rows[:STEPS]
    data = scale.transform(seen)
    run = np.asarray(model.rollout(data[0], STEPS).states)
    own, there = model.jacobian(run), model.jacobian(data)
    true = true_slopes(flow, seen, scale.std)
    beside = true_slopes(flow, scale.inverse(run), scale.std)
    error = np.sqrt(np.mean((there - true) ** 2))
    rows = (
        ("of the model, along its run", own, run),
        ("of the model, along the data", there, data),
        ("true, with half of the model's error", true + 0.5 * (there - true), data),
        ("true, along the model's run", beside, run),
        ("true, along the data", true, data),
    )
    flow_and_error = f"{name} (error of a slope {error:.3f})"
    found = []
    for words, slopes, path in rows:
        told = [exponents(slopes, flow.dt), exponents(slopes, flow.dt, path)]
        found.append((flow_and_error, words, *(", ".join(f"{each:.2f}" for each in some) for some in told)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("flows", nargs="*", default=list(FLOWS), help="by their names in dysts")
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    chosen = parser.parse_args()
    rows = [f"| {' | '.join(row)} |" for name in chosen.flows for row in measured(name)]
    publish(
        "\n".join(["| flow | slopes | exponents | across the path |", "|---|---|---|---|", *rows]),
        chosen.write,
        BEGIN,
        END,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
