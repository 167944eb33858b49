"""Training a surrogate by teacher forcing, with exact continuation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats, as_float, as_instance, as_series, as_trials
from palrnn.engine.gaps import first_whole_row
from palrnn.engine.kernel import pin_blas
from palrnn.engine.locks import folder_lock
from palrnn.engine.progress import Progress, listening
from palrnn.forcing.batches import BLOCK, Batches, training_trials
from palrnn.forcing.config import TrainConfig
from palrnn.forcing.evaluation import free_running_evaluation
from palrnn.forcing.history import Evaluation, History
from palrnn.forcing.polishing import can_judge, polish
from palrnn.forcing.state import (
    CHECKPOINT,
    TrainState,
    data_fingerprint,
    initial_model,
    load_state,
    save_state,
)
from palrnn.forcing.updating import advanced
from palrnn.model import Forcing, Surrogate, family_name
from palrnn.model.inputs import checked_inputs, checked_trial_inputs
from palrnn.model.surrogate import training_vector


@dataclass(frozen=True, eq=False)
class TrainResult:
    """A trained ``model`` (the last, or the best measured, as ``config.keep`` says) and its ``history``.

    ``forcing`` is the constant forcing of the last update that this model has had. ``polish`` says what
    polishing did, where long runs of the model ended; it is empty where there was no need.
    """

    model: Any
    history: History
    config: TrainConfig
    forcing: Forcing
    polish: str = ""

    def __repr__(self) -> str:
        return f"TrainResult({self.model!r}, {self.history!r})"


def train(
    x: ArrayLike | Sequence[ArrayLike],
    config: TrainConfig | None = None,
    *,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    model: Surrogate | None = None,
    run: str | os.PathLike[str] | None = None,
    heldout: ArrayLike | None = None,
    heldout_inputs: ArrayLike | None = None,
    standardizer: Standardizer | None = None,
    input_standardizer: Standardizer | None = None,
    dt: float | None = None,
    progress: Progress | None = None,
) -> TrainResult:
    """Train a surrogate on standardised ``x``: one series ``(T, N)``, or trials, which no sequence crosses.

    NaN in ``x`` means not observed (see `itf_loss`); every sequence starts at a row without a gap.
    ``inputs``, ``(T, K)`` or one for each trial, drive the model: z' = F(z) + C s, and C is learned, too;
    held-out data then have ``heldout_inputs``.

    It starts from ``model``, which also decides the family and its sizes, or at random, as ``config.family``
    and ``config.seed`` say. With a folder ``run``, the state is kept in ``run/checkpoint.safetensors`` every
    ``config.checkpoint_every`` updates, and the same call continues from there after any interruption, with
    the same result bit for bit. ``heldout (T, N)``, standardised likewise, is what ``config.evaluate_every``
    measures the free-running model on (a short one bounds what D_stsp can tell). ``standardizer``,
    ``input_standardizer`` and ``dt`` are stored with the model; without ``dt``, Lyapunov exponents are per
    step. Divergence raises `TrainingDivergedError`.
    """
    given: dict[str, Any] = {"inputs": inputs, "heldout": heldout, "heldout_inputs": heldout_inputs}
    given |= {"standardizer": standardizer, "input_standardizer": input_standardizer}
    config, start, trials, reference, keeper = _checked(x, config, model=model, run=run, dt=dt, **given)
    pin_blas()
    with keeper.held():
        state = _updated(config, start, trials, reference, keeper, dt, progress)
        if (
            config.polish
            and not (state.polish or trials.input_dim or _seen_alive(state))
            and can_judge(trials.x)
        ):
            state = _polished(state, trials.x, progress)
            if state.polish:
                keeper.save(state)
    return TrainResult(state.kept, state.history, config, state.forcing, state.polish)


def _updated(
    config: TrainConfig,
    start: Any,
    trials: _Trials,
    reference: _Trials,
    keeper: _Keeper,
    dt: float | None,
    progress: Progress | None,
) -> TrainState:
    """Return the state after all updates."""
    with listening(progress, "training") as report:
        state = keeper.load(config, start) or TrainState.start(config, start)
        if state.done == 0:
            keeper.save(state)
        batches = Batches(trials.x, config, state.theta.dtype, trials.inputs)
        try:
            while state.done < config.updates:
                after = advanced(state, batches, _stop(state.done, config), keeper.checkpoint)
                if _due(after.done, config):
                    after = after.evaluated(_evaluation(after, reference, dt))
                # in one assignment: an interruption finds the update with its evaluation, or neither
                state = after
                if state.done % config.checkpoint_every == 0 or state.done == config.updates:
                    keeper.save(state)
                report(state.done, config.updates, _figures(state))
        except KeyboardInterrupt:
            keeper.save(state)
            raise
    return state


def _seen_alive(state: TrainState) -> bool:
    """Whether the model to hand out was measured, and all of its long runs moved on."""
    best = state.history.best
    return state.config.keep == "best" and best is not None and best.alive == 1.0


def _polished(state: TrainState, x: list[Floats], progress: Progress | None) -> TrainState:
    """Return the state with its model polished; as it is where the model lives."""
    config = state.config.changed(forcing=state.forcing)
    found = polish(state.kept, x, config, rounds=config.polish, progress=progress)
    if not found.before.ended:
        return state
    vector = training_vector(found.model).astype(state.theta.dtype) if found.changed else None
    return replace(state, polish=found.words, polished=vector)


def check_training(
    x: ArrayLike | Sequence[ArrayLike], config: TrainConfig | None = None, **arguments: Any
) -> None:
    """Refuse what `train` with the same arguments would refuse; write nothing."""
    config, start, _, _, keeper = _checked(x, config, **arguments)
    keeper.load(config, start)


class _Trials(NamedTuple):
    """Trials ``x`` and the inputs of each, None where the model takes none."""

    x: list[Floats]
    inputs: list[Floats | None]

    @property
    def input_dim(self) -> int:
        return 0 if self.inputs[0] is None else self.inputs[0].shape[1]


def _checked(
    x: ArrayLike | Sequence[ArrayLike],
    config: TrainConfig | None,
    *,
    model: Surrogate | None = None,
    run: str | os.PathLike[str] | None = None,
    dt: float | None = None,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    heldout: ArrayLike | None = None,
    heldout_inputs: ArrayLike | None = None,
    **scales: Standardizer | None,
) -> tuple[TrainConfig, Any, _Trials, _Trials, _Keeper]:
    """Return the settings, the model to start from, trials, what to measure on, and who keeps the state."""
    config = TrainConfig() if config is None else as_instance(config, "config", TrainConfig)
    for name, scale in scales.items():
        if scale is not None:
            as_instance(scale, name, Standardizer)
    dt = None if dt is None else as_float(dt, "dt", above=0.0)
    series = training_trials(x, config.sequence_length)
    seen = series[0].shape[1]
    if model is not None:
        config = _fitted(config, as_instance(model, "model", Surrogate), seen)
    else:
        config = config.fitted(seen)
    if seen > config.latent_dim:
        raise ValueError(
            f"x has {seen} columns, more than latent_dim = {config.latent_dim}: give latent_dim = {seen} or "
            f"more (--latent-dim {seen}), leave it out, or name fewer columns"
        )
    trials = _with_inputs(series, inputs, model)
    reference = _reference(config, heldout, heldout_inputs, seen, trials.input_dim)
    keeper = _Keeper(run, trials, model, dt, scales)
    start = initial_model(config, seen, trials.input_dim) if model is None else model
    return config, start, trials, reference, keeper


def _with_inputs(
    x: list[Floats], inputs: ArrayLike | Sequence[ArrayLike] | None, model: Surrogate | None
) -> _Trials:
    """Return the trials with their inputs, which ``model``, if given, must take."""
    lengths = [len(trial) for trial in x]
    if model is not None:
        return _Trials(x, checked_trial_inputs(model, inputs, lengths))
    if inputs is None:
        return _Trials(x, [None] * len(x))
    width = as_trials(inputs, "inputs", min_steps=0)[0].shape[1]
    return _Trials(x, checked_trial_inputs(width, inputs, lengths))


class _Keeper:
    """Saves and finds the state of one run; without a folder it does nothing."""

    def __init__(
        self,
        run: str | os.PathLike[str] | None,
        trials: _Trials,
        start: Surrogate | None,
        dt: float | None,
        scales: dict[str, Standardizer | None],
    ) -> None:
        self._run = None if run is None else Path(run)
        self._scales, self._dt = scales, dt
        self._data = ""
        if self._run is not None:
            self._data = data_fingerprint([*trials.x, *(s for s in trials.inputs if s is not None)], start)

    @property
    def checkpoint(self) -> Path | None:
        return None if self._run is None else self._run / CHECKPOINT

    def load(self, config: TrainConfig, start: Surrogate) -> TrainState | None:
        return None if self._run is None else load_state(self._run, config, self._data, start)

    def held(self) -> AbstractContextManager[None]:
        """Hold the folder, made if missing, as its only writer."""
        return nullcontext() if self._run is None else folder_lock(self._run, "training")

    def save(self, state: TrainState) -> None:
        if self._run is not None:
            save_state(self._run, state, self._data, self._dt, **self._scales)


def _fitted(config: TrainConfig, model: Surrogate, seen: int) -> TrainConfig:
    """Return ``config`` with the family and the sizes of the model to start from."""
    if model.observed_dim != seen:
        raise ValueError(
            f"model must observe {seen} columns as x has, has observed_dim = {model.observed_dim}"
        )
    sizes = {"latent_dim": model.latent_dim, "gated": model.gated, "hidden": None}
    return config.changed(family=family_name(model), **sizes)


def _reference(
    config: TrainConfig, heldout: ArrayLike | None, inputs: ArrayLike | None, seen: int, count: int
) -> _Trials:
    """Return the held-out series as one trial; it is empty where it was not given."""
    if heldout is not None:
        series = as_series(heldout, "heldout", dim=seen, allow_nan=True)
        first_whole_row(series, "heldout")
        return _Trials([series], [checked_inputs(count, inputs, len(series), "heldout_inputs")])
    if config.evaluate_every is not None:
        raise ValueError("heldout must be given where evaluate_every is set")
    if inputs is not None:
        raise ValueError("heldout_inputs must come with heldout, which is None")
    return _Trials([np.empty((0, seen))], [None])


def _due(done: int, config: TrainConfig) -> bool:
    """Whether the model is to be measured after ``done`` updates: every so often, and at the end."""
    every = config.evaluate_every
    return every is not None and (done % every == 0 or done == config.updates)


def _evaluation(state: TrainState, reference: _Trials, dt: float | None) -> Evaluation:
    config = state.config
    return free_running_evaluation(
        state.current,
        reference.x[0],
        inputs=reference.inputs[0],
        update=state.done,
        steps=config.evaluate_steps,
        discard=config.evaluate_discard,
        dt=1.0 if dt is None else dt,
        long_steps=config.evaluate_long_steps,
    )


def _stop(done: int, config: TrainConfig) -> int:
    """Return the update up to which one kernel call may go."""
    marks = [BLOCK, config.checkpoint_every, config.evaluate_every, config.forcing.adapts_every]
    return min(config.updates, *((done // mark + 1) * mark for mark in marks if mark is not None))


def _figures(state: TrainState) -> dict[str, float]:
    recent = slice(max(0, state.done - BLOCK), state.done)
    return {
        "loss": float(state.loss[recent].mean()),
        "updates/s": float(1.0 / max(state.seconds[recent].mean(), 1e-9)),
    }
