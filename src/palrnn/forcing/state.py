"""The state of a training run between two updates, and its way to disk and back, bit for bit.

A file is continued only if it holds all of a state, field by field.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.engine.stored import Stored
from palrnn.forcing.config import TrainConfig
from palrnn.forcing.history import Evaluation, History
from palrnn.forcing.soap import curvature_of, turns
from palrnn.model import (
    ALRNN,
    Checkpoint,
    Forcing,
    ShallowPLRNN,
    Surrogate,
    family,
    load_checkpoint,
    save_checkpoint,
)
from palrnn.model.inputs import driven
from palrnn.model.surrogate import training_vector, with_training_vector


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
        name: stored.array(name, shape, kind, least=0.0 if name == "second_moment" else None)
        for name in _VECTORS
    }
    arrays["curvature"] = (
        stored.array("curvature", fresh.curvature.shape)
        if turns(config.optimizer, fresh.template)
        else np.empty(0)
    )
    arrays["strength"] = _strengths(stored, checkpoint, config, done)
    arrays |= {name: stored.array(name, (done,), least=0.0) for name in _SERIES if name != "strength"}
    if _POLISHED in checkpoint.arrays:
        arrays[_POLISHED] = stored.array(_POLISHED, shape, kind)
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


CHECKPOINT = "checkpoint.safetensors"
# changing these between two calls changes nothing about the model
_FREE_SETTINGS = frozenset({"checkpoint_every"})
#: What a file calls the vectors of a state, and the series that grow with its updates.
_VECTORS = {"theta": "theta", "first_moment": "first", "second_moment": "second", "best_theta": "best_theta"}
_SERIES = ("strength", "loss", "gradient_norm", "seconds")
_POLISHED = "polished"


@dataclass(frozen=True, eq=False)
class TrainState:
    """Parameters, the optimiser's moments and the history after ``done`` updates; replaced, never changed.

    ``template`` is a model of the same family and sizes. ``theta`` is the whole training vector;
    ``curvature`` holds the second moments and bases of SOAP, and nothing for RAdam.
    ``strength``, ``loss``, ``gradient_norm`` and ``seconds`` have room for the whole run: a later state fills
    in entries beyond the ``done`` of an earlier one, which does not look at them. ``polish`` says in words
    what polishing did, empty where there was none, and ``polished`` is the vector that came out, if it
    helped.
    """

    config: TrainConfig
    template: Surrogate
    done: int
    theta: NDArray[Any]
    first: NDArray[Any]
    second: NDArray[Any]
    curvature: Floats
    strength: Floats
    loss: Floats
    gradient_norm: Floats
    seconds: Floats
    evaluations: tuple[Evaluation, ...]
    best_theta: NDArray[Any]
    polish: str = ""
    polished: NDArray[Any] | None = None

    @classmethod
    def start(cls, config: TrainConfig, model: Surrogate) -> TrainState:
        """Return the state before the first update of ``model``."""
        theta = training_vector(model).astype(working_type(model, config))
        zeros = np.zeros_like(theta)
        curvature = curvature_of(model) if turns(config.optimizer, model) else np.empty(0)
        strength, loss, norm, seconds = (np.empty(config.updates) for _ in range(4))
        moments = zeros, zeros, curvature
        return cls(config, model, 0, theta, *moments, strength, loss, norm, seconds, (), theta)

    @property
    def current(self) -> Any:
        """The model as of the last update."""
        return with_training_vector(self.template, self.theta)

    @property
    def kept(self) -> Any:
        """The model to hand out: the last, or the one that was best when measured; or polished."""
        if self.polished is not None:
            return with_training_vector(self.template, self.polished)
        best = self.config.keep == "best"
        return with_training_vector(self.template, self.best_theta if best else self.theta)

    @property
    def forcing(self) -> Forcing:
        """The constant forcing that the model to hand out has been trained with in the end, or will be."""
        forcing, updates = self.config.forcing, self._updates_of_kept
        ends = self.config.keep == "last" or updates == self.config.updates
        if updates == 0 or (ends and forcing.adapts_every is None):
            return forcing.final
        strength = float(self.strength[updates - 1])
        return forcing.final if strength == forcing.final.strength else forcing.constant(strength)

    @property
    def _updates_of_kept(self) -> int:
        """How many updates the model to hand out has had."""
        if self.config.keep == "last":
            return self.done
        best = self.history.best
        return 0 if best is None else best.update

    @property
    def history(self) -> History:
        """What happened so far."""
        past, rates = slice(0, self.done), self.config.learning_rates(0, self.done)
        strength, seconds = self.strength[past], self.seconds[past]
        return History(self.loss[past], self.gradient_norm[past], rates, strength, seconds, self.evaluations)

    def evaluated(self, evaluation: Evaluation) -> TrainState:
        """Return the state with one evaluation more."""
        after = replace(self, evaluations=(*self.evaluations, evaluation))
        return replace(after, best_theta=self.theta) if after.history.best is evaluation else after


def initial_model(config: TrainConfig, observed_dim: int, input_dim: int = 0) -> Any:
    """Return the random start of the family that ``config`` names; of inputs, ``C ~ N(0, init_std^2)``."""
    cls = family(config.family)
    if not hasattr(cls, "initial"):
        raise ValueError(f"model must be given: the family {config.family!r} has no random start")
    sizes = {"latent_dim": config.latent_dim, "gated": config.gated}
    model = cls.initial(observed_dim, **sizes, init_std=config.init_std, seed=config.seed)
    if not input_dim:
        return model
    C = generator(config.seed, "inputs").standard_normal((config.latent_dim, input_dim))
    return driven(model, config.init_std * C)


@singledispatch
def working_type(model: Surrogate, config: TrainConfig) -> type[Any]:
    """Return the numbers that training calculates with: double, but for families that know single."""
    return np.float64


@working_type.register(ALRNN)
@working_type.register(ShallowPLRNN)
def _(model: ALRNN | ShallowPLRNN, config: TrainConfig) -> type[Any]:
    return np.float32 if config.precision == "single" else np.float64


def data_fingerprint(trials: list[Floats], start: Surrogate | None = None) -> str:
    """Return a short digest of the training data, and of a given start, by which a run recognises its own."""
    digest = hashlib.sha256()
    for trial in trials:
        digest.update(repr(trial.shape).encode())
        digest.update(trial.tobytes())
    if start is not None:
        digest.update(training_vector(start).tobytes())
    return digest.hexdigest()[:16]


def save_state(
    run: str | os.PathLike[str],
    state: TrainState,
    data: str,
    dt: float | None = None,
    **scales: Standardizer | None,
) -> None:
    """Write ``run/checkpoint.safetensors``: a model for everyone, and all that exact continuation needs."""
    rows = [(e.update, e.dstsp, e.outside, e.lyapunov, e.alive) for e in state.evaluations]
    measured = np.array(rows).reshape(-1, 5)
    arrays: dict[str, NDArray[Any]] = {name: getattr(state, field) for name, field in _VECTORS.items()}
    arrays |= {name: getattr(state, name)[: state.done] for name in _SERIES} | {"evaluations": measured}
    if turns(state.config.optimizer, state.template):
        arrays["curvature"] = state.curvature
    training = {"config": state.config.model_dump(mode="json"), "done": state.done, "data": data}
    if state.polish:
        training["polish"] = state.polish
    if state.polished is not None:
        arrays[_POLISHED] = state.polished
    save_checkpoint(
        Path(run) / CHECKPOINT,
        state.kept,
        dt=dt,
        training=training,
        arrays=arrays,
        forcing=state.forcing,
        **scales,
    )


def load_state(
    run: str | os.PathLike[str], config: TrainConfig, data: str, start: Surrogate
) -> TrainState | None:
    """Return the state saved in ``run``, or None; refuse one of other settings or data, or a damaged one."""
    file = Path(run) / CHECKPOINT
    if not file.exists():
        return None
    checkpoint = load_checkpoint(file)
    training = checkpoint.training
    if not isinstance(training.get("config"), dict) or "theta" not in checkpoint.arrays:
        raise ValueError(f"{file}: holds a model but no training run to continue; choose another folder")
    try:
        started = TrainConfig.stored(training["config"])
    except ValueError as error:
        raise ValueError(f"{file}: damaged: its training settings are refused: {error}") from None
    if "optimizer" not in config.model_fields_set:  # begun when another was the usual one
        config = config.changed(optimizer=started.optimizer)
    for name in TrainConfig.model_fields:
        before, asked = getattr(started, name), getattr(config, name)
        if name not in _FREE_SETTINGS and before != asked:
            raise ValueError(
                f"{file}: was started with {name} = {before!r}, asked for {asked!r}; choose another folder"
            )
    if training.get("data") != data:
        raise ValueError(f"{file}: was started on other data; choose another folder")
    done, arrays = checked_arrays(file, checkpoint, TrainState.start(config, start))
    evaluations = tuple(Evaluation(int(row[0]), *map(float, row[1:])) for row in arrays["evaluations"])
    vectors: dict[str, Any] = {field: arrays[name] for name, field in _VECTORS.items()} | {
        "curvature": arrays["curvature"]
    }
    series: dict[str, Any] = {name: _with_room(arrays[name], config.updates) for name in _SERIES}
    polish: dict[str, Any] = {
        "polish": str(training.get("polish", "")),
        "polished": arrays.get(_POLISHED),
    }
    state = TrainState(config, start, done, evaluations=evaluations, **vectors, **series, **polish)
    check_same_model(file, checkpoint, state)
    return state


def _with_room(past: Floats, updates: int) -> Floats:
    return np.concatenate([past, np.empty(updates - len(past))])
