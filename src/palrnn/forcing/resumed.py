"""Whether the file of a training run holds a state that can be continued: all of it, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.stored import Stored
from palrnn.forcing.config import TrainConfig
from palrnn.model import Checkpoint
from palrnn.model.surrogate import training_vector

if TYPE_CHECKING:
    from palrnn.forcing.state import TrainState


def checked_arrays(file: Path, checkpoint: Checkpoint, fresh: TrainState) -> tuple[int, dict[str, Any]]:
    """Return the number of updates done and the arrays of the state, all of the kind that ``fresh`` has.

    ``fresh`` is the state that the same call would start from; config and data are compared elsewhere.
    """
    config, stored = fresh.config, Stored(file, checkpoint.arrays, checkpoint.training)
    drift, model = checkpoint.drift, fresh.current
    for name in ("latent_dim", "observed_dim", "gated", "input_dim"):
        stored.same(name, getattr(drift, name), getattr(model, name))
    done = stored.whole("done", least=0, most=config.updates)
    shape, kind = fresh.theta.shape, fresh.theta.dtype
    arrays: dict[str, NDArray[Any]] = {
        "theta": stored.array("theta", shape, kind),
        "first_moment": stored.array("first_moment", shape, kind),
        "second_moment": stored.array("second_moment", shape, kind, least=0.0),
        "best_theta": stored.array("best_theta", shape, kind),
        "strength": _strengths(stored, checkpoint, config, done),
        "loss": stored.array("loss", (done,), least=0.0),
        "gradient_norm": stored.array("gradient_norm", (done,), least=0.0),
        "seconds": stored.array("seconds", (done,), least=0.0),
    }
    due = updates_measured(config, done)
    # D_stsp of a model that diverges is infinite, and it has no exponent
    measured = _evaluations(stored, checkpoint, len(due))
    stored.same("the updates in evaluations", measured[:, 0].tolist(), due)
    if np.isnan(measured[:, 1]).any() or (measured[:, 1] == -np.inf).any():
        raise stored.error("D_stsp in evaluations must be a number or infinity")
    return done, arrays | {"evaluations": measured}


def check_same_model(file: Path, checkpoint: Checkpoint, state: TrainState) -> None:
    """Refuse a file whose model is not the one that its training state gives."""
    there, given = checkpoint.drift, state.kept
    if not np.array_equal(training_vector(there), training_vector(given)):
        stored = Stored(file, checkpoint.arrays, checkpoint.training)
        raise stored.error("the model is not that of its training state")


def _evaluations(stored: Stored, checkpoint: Checkpoint, count: int) -> Floats:
    """Return the measurements so far; older files do not tell which part of the starts lives."""
    there = checkpoint.arrays.get("evaluations")
    if there is None or there.shape != (count, 4):
        return stored.array("evaluations", (count, 5), finite=False)
    measured = stored.array("evaluations", (count, 4), finite=False)
    return np.column_stack([measured, np.full(count, np.nan)])


def _strengths(stored: Stored, checkpoint: Checkpoint, config: TrainConfig, done: int) -> Floats:
    """Return the strengths of forcing so far; files of format 1 leave them to the settings."""
    if "strength" not in checkpoint.arrays and config.forcing.adapts_every is None:
        return config.forcing.strengths_of_updates(0, done, config.updates)
    return stored.array("strength", (done,), least=0.0)


def updates_measured(config: TrainConfig, done: int) -> list[int]:
    """Return after which of the first ``done`` updates the free-running model is measured."""
    every = config.evaluate_every
    if every is None:
        return []
    last = [done] if done == config.updates and done % every else []
    return [*range(every, done + 1, every), *last]
