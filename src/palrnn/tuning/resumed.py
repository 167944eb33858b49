"""Whether the file of a tuning run holds a state that can be continued: all of it, field by field."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import HUGE
from palrnn.engine.stored import Stored
from palrnn.model import PALRNN, Checkpoint
from palrnn.model.surrogate import training_vector
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.history import COLUMNS, TuningHistory
from palrnn.tuning.statistics import GATE_STDS, Statistics, statistics_kind


def checked_iteration(file: Path, checkpoint: Checkpoint, task: dict[str, Any], config: SAEMConfig) -> int:
    """Return how many iterations are done in ``file``; refuse a run of another ``task``."""
    notes = Stored(file, checkpoint.arrays, checkpoint.training).table("saem")
    for name, words in (
        ("config", "other settings"),
        ("seed", "another seed"),
        ("data", "another model or data"),
    ):
        if _today(name, notes.get(name)) != task[name]:
            raise ValueError(f"{file}: holds a run with {words}; choose another folder")
    total = config.iterations if config.learns_noise else 0
    return Stored(file, checkpoint.arrays, notes).whole("iteration", least=0, most=total)


def _today(name: str, noted: Any) -> Any:
    """Return a note as it would be written today: settings of 0.1 told an interval instead of the forcing."""
    if name != "config" or not isinstance(noted, dict):
        return noted
    try:
        return SAEMConfig(**noted).model_dump(mode="json")
    except ValueError:
        return noted


def checked_model(file: Path, checkpoint: Checkpoint, start: PALRNN, config: SAEMConfig) -> PALRNN:
    """Return the model in ``file``, if it is one that tuning can have made of ``start``."""
    stored, model = Stored(file, checkpoint.arrays, checkpoint.training), checkpoint.model
    if not isinstance(model, PALRNN):
        raise stored.error(f"it must hold a PAL-RNN, holds an {type(model).__name__}")
    for name in ("latent_dim", "observed_dim", "gated", "input_dim"):
        stored.same(name, getattr(model.drift, name), getattr(start.drift, name))
    if not np.array_equal(_embedding(model), _embedding(start)):
        raise stored.error("E must be that of the model that tuning started from")
    if not config.learn_gate_std:
        stored.same("gate_std", model.gate_std, start.gate_std)
    stored.same("whether initial is given", model.initial is None, start.initial is None)
    return model


def checked_rows(file: Path, checkpoint: Checkpoint, iteration: int) -> list[dict[str, float]]:
    """Return the rows of the history, one for each model so far."""
    stored = Stored(file, checkpoint.arrays, checkpoint.training)
    # what was not evaluated is NaN, and a model that diverges has an infinite D_stsp
    columns = {
        name: stored.array(f"history.{name}", (iteration + 1,), finite=name == "iteration")
        for name in COLUMNS
    }
    stored.same("history.iteration", columns["iteration"].tolist(), list(range(iteration + 1)))
    return TuningHistory(columns).rows


def checked_average(
    file: Path, checkpoint: Checkpoint, model: PALRNN, config: SAEMConfig, iteration: int
) -> Statistics | None:
    """Return the averaged statistics, if the configuration keeps them."""
    stored = Stored(file, checkpoint.arrays, checkpoint.training)
    kind = statistics_kind(model.drift)
    names = [field.name for field in fields(kind)]
    if not config.robbins_monro or iteration == 0:
        for name in names:
            stored.no_array(f"average.{name}")
        return None
    dim, seen, inputs = model.drift.latent_dim, model.drift.observed_dim, model.drift.input_dim
    weights = checkpoint.arrays.get("average.weights", np.empty(0))
    shapes: dict[str, tuple[int, ...]] = {
        "residual": (seen,),
        "observed": (seen,),
        "misfit": (seen, seen),
        "whole": (),
        "start": (dim,),
        "spread": (dim, dim),
        "gates": GATE_STDS.shape,
        "transitions": (),
        "starts": (),
        "gram": (2 * dim + 1 + inputs, 2 * dim + 1 + inputs),
        "cross": (dim, 2 * dim + 1 + inputs),
        "square": (dim,),
        "outer": (dim, dim),
        "before": (weights.size, dim + inputs),
        "codes": (weights.size, model.drift.gated),
        "after": (weights.size, dim),
        "weights": (weights.size,),
    }
    positive = {"residual", "observed", "whole", "start", "transitions", "starts", "square", "weights"}
    average: dict[str, NDArray[Any]] = {
        name: stored.array(
            f"average.{name}",
            shapes[name],
            np.bool_ if name == "codes" else np.float64,
            least=0.0 if name in positive else None,
        )
        for name in names
    }
    return kind(**average)


def checked_paths(
    file: Path, checkpoint: Checkpoint, shape: tuple[int, ...], config: SAEMConfig, iteration: int
) -> NDArray[np.float64] | None:
    """Return the paths ``(K, L, P)`` that a conditional filter goes on from, if there are any."""
    stored = Stored(file, checkpoint.arrays, checkpoint.training)
    if config.smoother != "conditional" or iteration == 0:
        stored.no_array("paths")
        return None
    # windows that were never drawn have NaN
    paths = stored.array("paths", shape, finite=False)
    if (np.abs(paths) > HUGE).any():
        raise stored.error(f"paths must be within ±{HUGE:g}, hold {np.nanmax(np.abs(paths)):g}")
    return paths


def _embedding(model: PALRNN) -> Any:
    return training_vector(model.drift)[model.drift.theta.size :]
