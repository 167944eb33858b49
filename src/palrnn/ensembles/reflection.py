"""What training itself does to a figure, seen where the truth is known: in a world made by a model.

A small model that was trained for a limited time has an exponent of its own, and most such models err to the
same side: no spread between them shows it. But a model is a system whose figures are known. Let each model of
an ensemble make a series like the data, as long and with as much noise of observation, and train a *refit* on
that in the same way, from another start. By how much refits miss their models is how much models may have
missed the system, and is taken off (`palrnn.geometry.reflection`).

It corrects what depends on how training goes, noise of observation among it; not that the system may be of a
kind that no such model reaches, nor what its process noise does: a model's own world has none. Where past
values stand beside a column, each gets noise of its own, which in the data is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.data import noise_level
from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.ensembles.variation import longest_columns
from palrnn.invariants.free_run import free_run

# steps before a model's own series
_DISCARD = 3000
# of the deviation of the data: a column that moves less is at rest
_LEAST = 1e-3


def own_series(model: Any, trials: Sequence[Floats], seed: int) -> list[Floats] | None:
    """Return series that ``model`` makes by itself, like ``trials``: as long, with their gaps and noise.

    They follow each other along one free run, in the model's coordinates. None if that diverges or comes to
    rest: there is nothing to learn from it.
    """
    rows = np.concatenate(trials)
    level = np.array([noise_level(each)[0] if len(each) else 0.0 for each in longest_columns(trials)])
    run = free_run(model, rows[~np.isnan(rows).any(axis=1)][0], len(rows), _DISCARD)
    if run.diverged or (run.observed.std(axis=0) < _LEAST * np.nanstd(rows, axis=0)).any():
        return None
    noise = level * generator(seed, "own world").standard_normal(run.observed.shape)
    made = np.split(run.observed + noise, np.cumsum([len(trial) for trial in trials])[:-1])
    return [np.where(np.isnan(trial), np.nan, rows) for trial, rows in zip(trials, made, strict=True)]
