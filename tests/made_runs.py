"""Models made by hand whose fate is known, as runs that a report can be asked about: nothing is trained."""

from __future__ import annotations

import numpy as np

from palrnn.data import Standardizer
from palrnn.model import ALRNN
from palrnn.report.view import Run
from palrnn.runs import Reconstruction, ReportSettings

SMALL = ReportSettings(invariants={"steps": 400, "discard": 50, "pairs": 2, "ahead": 5, "long_steps": 1000})
#: What takes long, and is drawn alike whatever the fate.
LONG = ("geometry", "diagnostics", "tuning")


def growing() -> Reconstruction:
    """Return a spiral that grows without bounds, and what it grew from."""
    angle = 0.1 * np.arange(600)
    data = 1.004 ** np.arange(600)[:, None] * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    data[:, 2] = 0.5 * data[:, 0] + 0.01 * np.cos(0.3 * angle)
    c, s = 1.05 * np.cos(0.1), 1.05 * np.sin(0.1)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.1, 0.9]])
    return _run(ALRNN(np.zeros(3), turn, np.zeros(3), np.eye(3), 0), data, "growing")


def tent() -> Reconstruction:
    """Return the tent map, chaotic in one coordinate, with its own orbit."""
    model = ALRNN([1.7], [[-3.4]], [1.0], [[1.0]], 1)
    return _run(model, np.asarray(model.rollout([0.2], 1200).states), "tent")


def channels(count: int = 64) -> Reconstruction:
    """Return a rotation seen through many channels, with noise."""
    rng = np.random.default_rng(0)
    angle = 0.1 * np.arange(1200)
    mix = rng.standard_normal((2, count))
    data = np.column_stack([np.cos(angle), np.sin(angle)]) @ mix
    c, s = np.cos(0.1), np.sin(0.1)
    turn = np.linalg.pinv(mix) @ np.array([[c, s], [-s, c]]) @ mix
    model = ALRNN(np.zeros(count), turn.T, np.zeros(count), np.eye(count), 1)
    return _run(model, data + 0.02 * rng.standard_normal(data.shape), "channels")


def seen(run: Reconstruction) -> Run:
    """Return what the report shows of ``run``, at the smallest size."""
    return run.view(SMALL, without=LONG)


def _run(model: ALRNN, data: np.ndarray, name: str) -> Reconstruction:
    dim = data.shape[1]
    return Reconstruction(
        model=model,
        standardizer=Standardizer(np.zeros(dim), np.ones(dim)),
        reference=data,
        dt=0.1,
        name=name,
    )
