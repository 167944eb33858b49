"""The state of a training run between two updates, and its way to disk and back, bit for bit."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.forcing.config import TrainConfig
from palrnn.forcing.history import Evaluation, History
from palrnn.forcing.objective import packed, unpacked
from palrnn.forcing.resumed import check_same_model, checked_arrays
from palrnn.model import ALRNN, initial_alrnn, load_checkpoint, save_checkpoint

CHECKPOINT = "checkpoint.safetensors"
# changing these between two calls changes nothing about the model
_FREE_SETTINGS = frozenset({"checkpoint_every"})


@dataclass(frozen=True, eq=False)
class TrainState:
    """Parameters, RAdam's moments and the history after ``done`` updates; replaced, never changed.

    ``loss``, ``gradient_norm`` and ``seconds`` have room for the whole run: a later state fills in entries
    beyond the ``done`` of an earlier one, which is none the wiser.
    """

    config: TrainConfig
    observed_dim: int
    done: int
    theta: NDArray[Any]
    first: NDArray[Any]
    second: NDArray[Any]
    loss: Floats
    gradient_norm: Floats
    seconds: Floats
    evaluations: tuple[Evaluation, ...]
    best_theta: NDArray[Any]

    @classmethod
    def start(cls, config: TrainConfig, observed_dim: int) -> TrainState:
        """Return the state before the first update, with the paper's initialisation."""
        model = initial_alrnn(
            config.latent_dim, observed_dim, config.gated, init_std=config.init_std, seed=config.seed
        )
        theta = packed(model).astype(np.float32 if config.precision == "single" else np.float64)
        zeros = np.zeros_like(theta)
        loss, norm, seconds = (np.empty(config.updates) for _ in range(3))
        return cls(config, observed_dim, 0, theta, zeros, zeros, loss, norm, seconds, (), theta)

    @property
    def current(self) -> ALRNN:
        """The model as of the last update."""
        return self._model(self.theta)

    @property
    def kept(self) -> ALRNN:
        """The model to hand out: the last, or the one that was best when measured."""
        return self._model(self.best_theta if self.config.keep == "best" else self.theta)

    @property
    def history(self) -> History:
        """What happened so far."""
        rates, alphas = self.config.learning_rates(0, self.done), self.config.alphas(0, self.done)
        past = slice(0, self.done)
        return History(
            self.loss[past], self.gradient_norm[past], rates, alphas, self.seconds[past], self.evaluations
        )

    def evaluated(self, evaluation: Evaluation) -> TrainState:
        """Return the state with one evaluation more."""
        best = self.history.best
        better = best is None or evaluation.dstsp < best.dstsp
        return replace(
            self,
            evaluations=(*self.evaluations, evaluation),
            best_theta=self.theta if better else self.best_theta,
        )

    def _model(self, theta: NDArray[Any]) -> ALRNN:
        A, W, h, E = unpacked(theta, self.config.latent_dim, self.observed_dim)
        return ALRNN(A, W, h, E, self.config.gated)


def data_fingerprint(trials: list[Floats]) -> str:
    """Return a short digest of the training data, by which a run recognises its own."""
    digest = hashlib.sha256()
    for trial in trials:
        digest.update(repr(trial.shape).encode())
        digest.update(trial.tobytes())
    return digest.hexdigest()[:16]


def save_state(
    run: str | os.PathLike[str],
    state: TrainState,
    data: str,
    standardizer: Standardizer | None,
    dt: float | None,
) -> None:
    """Write ``run/checkpoint.safetensors``: a model for everyone, and all that exact continuation needs."""
    measured = np.array([(e.update, e.dstsp, e.outside, e.lyapunov) for e in state.evaluations]).reshape(
        -1, 4
    )
    arrays: dict[str, NDArray[Any]] = {
        "theta": state.theta,
        "first_moment": state.first,
        "second_moment": state.second,
        "best_theta": state.best_theta,
        "loss": state.loss[: state.done],
        "gradient_norm": state.gradient_norm[: state.done],
        "seconds": state.seconds[: state.done],
        "evaluations": measured,
    }
    training = {"config": state.config.model_dump(mode="json"), "done": state.done, "data": data}
    save_checkpoint(
        Path(run) / CHECKPOINT, state.kept, standardizer=standardizer, dt=dt, training=training, arrays=arrays
    )


def load_state(
    run: str | os.PathLike[str], config: TrainConfig, data: str, observed_dim: int
) -> TrainState | None:
    """Return the state saved in ``run``, or None; refuse one of other settings or data, or a damaged one."""
    file = Path(run) / CHECKPOINT
    if not file.exists():
        return None
    checkpoint = load_checkpoint(file)
    training = checkpoint.training
    if not isinstance(training.get("config"), dict) or "theta" not in checkpoint.arrays:
        raise ValueError(f"{file}: holds a model but no training run to continue; choose another folder")
    asked = config.model_dump(mode="json")
    for name, value in asked.items():
        before = training["config"].get(name)
        if name not in _FREE_SETTINGS and before != value:
            raise ValueError(
                f"{file}: was started with {name} = {before!r}, asked for {value!r}; choose another folder"
            )
    if training.get("data") != data:
        raise ValueError(f"{file}: was started on other data; choose another folder")
    done, arrays = checked_arrays(file, checkpoint, TrainState.start(config, observed_dim))
    evaluations = tuple(Evaluation(int(row[0]), *map(float, row[1:])) for row in arrays["evaluations"])
    state = TrainState(
        config,
        observed_dim,
        done,
        arrays["theta"],
        arrays["first_moment"],
        arrays["second_moment"],
        _with_room(arrays["loss"], config.updates),
        _with_room(arrays["gradient_norm"], config.updates),
        _with_room(arrays["seconds"], config.updates),
        evaluations,
        arrays["best_theta"],
    )
    check_same_model(file, checkpoint, state)
    return state


def _with_room(past: Floats, updates: int) -> Floats:
    return np.concatenate([past, np.empty(updates - len(past))])
