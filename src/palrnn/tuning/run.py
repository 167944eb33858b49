"""A run folder: the state of tuning after each iteration, so that an interrupted run continues exactly."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.model import PALRNN, load_checkpoint, save_checkpoint
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.history import TuningHistory
from palrnn.tuning.resumed import (
    checked_average,
    checked_iteration,
    checked_model,
    checked_paths,
    checked_rows,
)
from palrnn.tuning.statistics import Statistics

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
