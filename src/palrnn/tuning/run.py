"""A run folder: the state of tuning after each iteration, so that an interrupted run continues exactly.

A file is continued only if it holds all of a state, field by field.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from palrnn.data import Standardizer
from palrnn.engine.checks import HUGE, Floats
from palrnn.engine.stored import Stored
from palrnn.model import PALRNN, Checkpoint, load_checkpoint, save_checkpoint
from palrnn.model.surrogate import training_vector
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.history import COLUMNS, TuningHistory
from palrnn.tuning.statistics import GATE_STDS, Statistics, statistics_kind

if TYPE_CHECKING:
    from palrnn.tuning.saem import Problem

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, eq=False)
class State:
    """Where tuning is: the model after ``iteration`` updates, the history, averaged statistics if any.

    ``paths (K, L, P)`` are those that a conditional filter goes on from, of all windows.
    """

    model: PALRNN
    iteration: int
    rows: list[dict[str, float]]
    average: Statistics | None
    paths: Floats | None

    def last(self, column: str) -> float:
        """Return the newest value of a column that has one, or NaN."""
        values = [row[column] for row in self.rows if column in row and not np.isnan(row[column])]
        return values[-1] if values else float("nan")


@dataclass(frozen=True, eq=False)
class SavedTuning:
    """The state of one tuning in its folder; by its ``task`` no other run continues it."""

    path: Path
    start: PALRNN
    config: SAEMConfig
    task: dict[str, Any]
    standardizer: Standardizer | None
    windows: int
    input_standardizer: Standardizer | None = None

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        model: PALRNN,
        problem: Problem,
        standardizer: Standardizer | None,
        input_standardizer: Standardizer | None = None,
    ) -> SavedTuning:
        """Return the folder of this task, which need not be there yet."""
        folder = Path(path)
        settings = problem.config.model_dump(mode="json")
        task = {"config": settings, "seed": problem.seed, "data": _digest(model, problem)}
        return cls(folder, model, problem.config, task, standardizer, len(problem.pool), input_standardizer)

    @property
    def begun(self) -> bool:
        """Whether there is something to continue."""
        return (self.path / CHECKPOINT).is_file()

    def save(self, state: State) -> None:
        """Write ``checkpoint.safetensors``: a model for everyone, and all that exact continuation needs."""
        arrays = {f"history.{name}": column for name, column in TuningHistory.of(state.rows).columns.items()}
        if state.average is not None:
            arrays |= {f"average.{name}": value for name, value in state.average.arrays().items()}
        if state.paths is not None:
            arrays["paths"] = state.paths
        training = {"saem": self.task | {"iteration": state.iteration}}
        save_checkpoint(
            self.path / CHECKPOINT,
            state.model,
            standardizer=self.standardizer,
            dt=self.config.dt,
            training=training,
            arrays=arrays,
            forcing=self.config.forcing.final,
            input_standardizer=self.input_standardizer,
        )

    def load(self) -> State:
        """Read the state, if it belongs to the same task and is whole."""
        file = self.path / CHECKPOINT
        saved = load_checkpoint(file)
        iteration = checked_iteration(file, saved, self.task, self.config)
        model = checked_model(file, saved, self.start, self.config)
        average = checked_average(file, saved, model, self.config, iteration)
        shape = (self.windows, self.config.length, model.drift.gated)
        paths = checked_paths(file, saved, shape, self.config, iteration)
        return State(model, iteration, checked_rows(file, saved, iteration), average, paths)


def _digest(model: PALRNN, problem: Problem) -> str:
    """Return a fingerprint of the model that tuning starts from and of all data."""
    digest = hashlib.sha256()
    parts = [
        *model.drift.arrays().values(),
        model.process_covariance,
        model.observation_covariance,
        model.initial_covariance,
        model.observation_map.B,
        model.observation_map.d,
        np.array([model.gate_std, model.drift.gated, model.initial is None]),
        problem.pool,
        *([] if problem.anchor is None else [problem.anchor]),
        *([] if problem.heldout is None else [problem.heldout]),
        *([] if problem.reference is None else [problem.reference]),
        *(part for part in problem.inputs if part is not None),
    ]
    for part in parts:
        digest.update(str(np.shape(part)).encode() + np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


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
