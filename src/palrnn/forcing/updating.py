"""Some updates of training at once: from one state of a run to a later one."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine import compile_time
from palrnn.engine.checks import Floats
from palrnn.forcing.batches import BLOCK, Batches
from palrnn.forcing.config import TrainConfig
from palrnn.forcing.objective import Moments, Updates, run_updates
from palrnn.forcing.soap import blocks_in, turn_bases, turns
from palrnn.forcing.state import TrainState


class TrainingDivergedError(ArithmeticError):
    """Training met a loss or gradient that is not finite.

    ``update`` is the number (from 1) of the update that failed, ``model`` the last network with finite
    parameters, and ``checkpoint`` the last checkpoint on disk, if the run has a folder.
    """

    def __init__(self, update: int, model: Any, config: TrainConfig, checkpoint: Path | None) -> None:
        kept = f" The last good checkpoint is {checkpoint}." if checkpoint is not None else ""
        clip = "gradient_clip (1.0, say)" if config.gradient_clip is None else "a smaller gradient_clip"
        super().__init__(
            f"training diverged at update {update}: the loss or its gradient is not finite.{kept} "
            f"Try {clip}, a smaller learning_rate (now {config.learning_rate:g}) or more forcing "
            f"(a smaller tau; now {config.forcing!r}), and make sure that x is standardised."
        )
        self.update, self.model, self.config, self.checkpoint = update, model, config, checkpoint

    def __reduce__(self) -> tuple[Any, ...]:
        # errors travel between processes by their arguments, not by their message
        return type(self), (self.update, self.model, self.config, self.checkpoint)


def advanced(state: TrainState, batches: Batches, end: int, checkpoint: Path | None = None) -> TrainState:
    """Return the state at update ``end``. The old state stays whole, should an interruption come.

    ``end`` must lie within the block of batches that begins at or before the state's last update, and
    ``checkpoint`` is what a `TrainingDivergedError` refers to.
    """
    config = state.config
    starts, noise = batches.draws(state.done, end)
    theta, curvature = state.theta.copy(), state.curvature.copy()
    soap = turns(config.optimizer, state.template)
    blocks = blocks_in(state.template, curvature) if soap else None
    moments = Moments(state.first.copy(), state.second.copy(), blocks)
    if blocks is not None and state.done > 0 and state.done % BLOCK == 0:
        turn_bases(blocks, moments.first, moments.second)
    now = slice(state.done, end)
    strengths = _strengths(state, batches, starts, end)
    todo = Updates(
        done=state.done,
        series=batches.series,
        whole=batches.whole,
        drive=batches.drive,
        starts=starts,
        noise=noise,
        length=config.sequence_length,
        interval=config.forcing.interval,
        strengths=strengths,
        rates=config.learning_rates(state.done, end),
        clip=np.inf if config.gradient_clip is None else config.gradient_clip,
    )
    begun, compiled = time.perf_counter(), compile_time.spent()
    history = state.loss[now], state.gradient_norm[now]
    diverged = run_updates(state.template, theta, moments, todo, history)
    state.strength[now] = strengths
    taken = time.perf_counter() - begun - (compile_time.spent() - compiled)
    state.seconds[now] = max(taken, 0.0) / (end - state.done)
    finite = bool(np.isfinite(theta).all())
    if diverged >= 0 or not finite:
        failed = state.done + diverged + 1 if diverged >= 0 else end
        before = replace(state, theta=theta).current if finite else state.current
        raise TrainingDivergedError(failed, before, config, checkpoint)
    return replace(
        state, done=end, theta=theta, first=moments.first, second=moments.second, curvature=curvature
    )


def _strengths(state: TrainState, batches: Batches, starts: NDArray[np.int64], end: int) -> Floats:
    """Return the forcing strengths of the updates up to ``end``; ``starts (U, B)`` are their sequences."""
    config, forcing, done = state.config, state.config.forcing, state.done
    if forcing.adapts_every is None:
        return forcing.strengths_of_updates(done, end, config.updates)
    strength = forcing.strength if done == 0 else float(state.strength[done - 1])
    if done % forcing.adapts_every == 0:
        x = batches.series[starts[0][:, None] + np.arange(config.sequence_length)]
        strength = forcing.adapted(strength, state.current, x.astype(np.float64))
    return np.full(end - done, strength)
