"""Models that differ in how they were made: a multi-model ensemble, as climate science has them.

A small model is not the system, and models of one size, forcing and learning rate share most of their error:
their spread, over data or random starts, does not show it. Where size, forcing, noise on the inputs and
learning rate are drawn anew for each model, the errors differ, and the spread shows more of them.

What they all share where measurements are noisy is a bias: teacher forcing takes these for states, and the
exponents of its models come out too low. So they learn from local cubics instead (`smoothed`), whose windows
are drawn anew as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.data import smoothed, suggest_windows
from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.forcing import TrainConfig
from palrnn.invariants import dstsp
from palrnn.invariants.free_run import free_run
from palrnn.invariants.state_space import delay_for
from palrnn.model import Forcing
from palrnn.model.surrogate import family

# by what factor gates and the interval of forcing go up or down, and the learning rate
_SIZE, _INTERVAL, _RATE = 1.6, 2.0, 2.0
_STRENGTHS, _NOISES = (0.05, 0.5), (0.005, 0.05)
_USUAL_INTERVAL = 16
# the window of a smoothed series likewise; the narrowest that changes anything, and rows too few to tell it
_WINDOW, _NARROWEST, _FEW = 1.4, 5, 200
# a free run as long as this, long after its start, is held against the data
_STEPS, _DISCARD = 5000, 15_000
_TIMES, _MORE = 2.0, 1.0


def varied(config: TrainConfig, seed: int, number: int) -> TrainConfig:
    """Return the settings of model ``number``: ``config`` with what is a matter of choice drawn anew.

    The number of gates (and of units with them; of a shallow PLRNN that of its hidden units) varies by a
    factor of 1.6 up or down, the learning rate by 2; half of the models are forced at intervals of half to
    twice those of ``config`` (16, where it has none), half at every step with a strength of 0.05 to 0.5;
    noise on the inputs is 0.005 to 0.05. All are uniform in their logarithm.
    """
    rng = generator(seed, "variation", number)

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    gated = max(1, round(config.gated * between(1 / _SIZE, _SIZE))) if config.gated else 0
    each = getattr(family(config.family), "gates_per_hidden", None)
    if each is None:
        sizes = {"latent_dim": config.latent_dim - config.gated + gated, "gated": gated}
    else:  # gates are those of hidden units, and the units are what is seen
        hidden = max(1, gated // each)
        sizes = {"hidden": hidden, "gated": each * hidden}
    every = max(1, round((config.tau if config.tau > 1 else _USUAL_INTERVAL) * between(0.5, _INTERVAL)))
    strength = between(*_STRENGTHS)
    return config.changed(
        **sizes,
        forcing=Forcing.identity(every) if rng.random() < 0.5 else Forcing.generalised(strength),
        input_noise=between(*_NOISES),
        learning_rate=config.learning_rate * between(1 / _RATE, _RATE),
    )


def varied_series(trials: Sequence[Floats], seed: int, number: int) -> list[Floats]:
    """Return what model ``number`` learns from: ``trials``, each ``(T_k, N)``, without most of their noise.

    Windows are wider or narrower than the usual ones by a factor of up to 1.4, uniform in its logarithm.
    """
    return without_noise(trials, float(_WINDOW ** generator(seed, "window", number).uniform(-1.0, 1.0)))


def without_noise(trials: Sequence[Floats], factor: float = 1.0) -> list[Floats]:
    """Return ``trials`` as local cubics (`smoothed`).

    Windows are those of `suggest_windows` for the trial with most rows of a column, times ``factor``. A
    column in which no noise is seen stays as it is, and so does one too short to tell.
    """
    found = [suggest_windows(column)[0] if len(column) else 1 for column in longest_columns(trials)]
    windows = [_odd(size * factor) if size > 1 else 1 for size in found]
    return [smoothed(trial, windows=windows) for trial in trials]


def longest_columns(trials: Sequence[Floats]) -> list[Floats]:
    """Return each column, ``(T, 1)``, of the trial that has most values in it; empty where these are few."""
    found = []
    for n in range(trials[0].shape[1]):
        column = max((trial[:, [n]] for trial in trials), key=lambda each: np.isfinite(each).sum())
        found.append(column if np.isfinite(column).sum() >= _FEW else column[:0])
    return found


def _odd(size: float) -> int:
    return max(_NARROWEST, 2 * round((size - 1) / 2) + 1)


def alike(distances: Sequence[float | None]) -> list[bool]:
    """Return which models, by their `distance`, go where the data go; None is one that diverged.

    Training may end with a model that rests or circles, sooner or later. One that counts is no more than a
    nat above twice the distance of the better ones, at the lower quartile over all: more than half of the
    models may have ended.
    """
    away = [np.inf if each is None else each for each in distances]
    # the order statistic: infinite ones must not be interpolated
    better = sorted(away)[(len(away) - 1) // 4] if away else 0.0
    return [bool(np.isfinite(each) and each <= _TIMES * better + _MORE) for each in away]


def finite_distance(model: Any, trials: Sequence[Floats]) -> float | None:
    """Return the `distance` of ``model`` to ``trials`` without their noise; None if it is not finite."""
    found = distance(model, np.concatenate(without_noise(trials)))
    return found if np.isfinite(found) else None


def distance(model: Any, x: Floats) -> float:
    """Return D_stsp of the free run of ``model``, from 15,000 steps on, against ``x (T, N)``."""
    whole = x[~np.isnan(x).any(axis=1)]
    run = free_run(model, whole[0], _STEPS, _DISCARD)
    return float("inf") if run.diverged else dstsp(run.observed, x, delay=delay_for(x[:_STEPS])).value
