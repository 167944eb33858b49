"""The free run that every measurement starts from: one rollout, and one rule for a model that diverges.

The rule: a run that diverged has no invariants. It says after how many steps, and keeps the states before.

A model with external inputs goes nowhere without them. Measurements are longer than most recordings, so
inputs are repeated from their beginning where a run outlasts them. The seam is one more event to respond to,
once in T steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_floats, as_int, as_series, as_shape
from palrnn.model import PALRNN, Rollout, Surrogate, drift_of
from palrnn.model.engine import rollout_from
from palrnn.model.inputs import checked_inputs, input_dim, offsets


def checked_drive(model: Any, inputs: ArrayLike | None, name: str = "inputs") -> Floats | None:
    """Return ``inputs (T, K)`` of any length, or None where the model takes none."""
    if inputs is None or not input_dim(model):
        return checked_inputs(model, inputs, 1, name)
    rows = as_series(inputs, name, min_steps=1)
    return checked_inputs(model, rows, len(rows), name)


def checked_drives(model: Any, inputs: ArrayLike | None, count: int) -> Floats | None:
    """Return inputs of ``count`` runs, ``(1, T, K)`` where all have the same, or ``(count, T, K)``."""
    if inputs is None or not input_dim(model):
        checked_inputs(model, inputs, 1)
        return None
    drives = as_floats(inputs, "inputs")
    if drives.ndim < 3:
        drive = checked_drive(model, drives)
        return None if drive is None else drive[None]
    if (
        drives.ndim != 3
        or drives.shape[0] != count
        or drives.shape[1] < 1
        or drives.shape[2] != input_dim(model)
    ):
        wanted = f"(T, {input_dim(model)}) or ({count}, T, {input_dim(model)}), one series for each start"
        raise ValueError(f"inputs must be {wanted}, got {drives.shape}")
    return drives


def drive_offsets(model: Any, drive: Floats | None, begin: int, steps: int) -> Floats | None:
    """Return C s of the steps ``begin .. begin + steps - 1`` of a run along ``drive (T, K)``."""
    if drive is None:
        return None
    return offsets(model, drive[(begin + np.arange(steps)) % len(drive)])


def drives_offsets(model: Any, drives: Floats | None, begin: int, steps: int) -> Floats | None:
    """Return C s of runs side by side, ``(steps, 1 or S, M)``, along ``drives (1 or S, T, K)``."""
    if drives is None:
        return None
    rows = drives[:, (begin + np.arange(steps)) % drives.shape[1]]
    return offsets(model, rows.transpose(1, 0, 2))


def drives_from(inputs: Floats | None, rows: Any) -> Floats | None:
    """Return ``(S, T, K)``: the inputs as runs meet them that start at each of ``rows (S,)``."""
    if inputs is None:
        return None
    return np.ascontiguousarray(np.stack([np.roll(inputs, -int(row), axis=0) for row in rows]))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FreeRun(Rollout):
    """A rollout with what is seen of it: ``observed (steps, N)``, in the model's coordinates."""

    observed: Floats


def free_run(
    model: Surrogate | PALRNN,
    x1: Floats,
    steps: int,
    discard: int = 0,
    *,
    inputs: ArrayLike | None = None,
    observation_noise: bool = False,
    seed: int = 0,
) -> FreeRun:
    """Return ``steps`` states after ``discard``, from the observation ``x1 (N,)``.

    A surrogate runs with hard gates and without noise; a `PALRNN` is sampled with gate and process noise, and
    is seen with observation noise only if ``observation_noise``. A driven model runs along ``inputs (T, K)``,
    whose first row acts on the first step, and which are repeated where the run outlasts them.
    """
    drift = drift_of(model)
    start = as_shape(x1, "x1", (drift.observed_dim,))
    steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
    drive = checked_drive(drift, inputs)
    if not isinstance(model, PALRNN):
        pushes = drive_offsets(drift, drive, 0, discard + steps)
        run = rollout_from(drift, drift.embed(start), steps, discard, pushes)
        return FreeRun(run.states, run.diverged_at, observed=run.states[:, : drift.observed_dim])
    length = max(2, discard + steps)
    s = None if drive is None else drive[np.arange(length) % len(drive)]
    sample = model.sample(start, length, seed, inputs=s)
    states, seen = (array[discard : discard + steps] for array in (sample.states, sample.observations))
    seen = seen if observation_noise else model.observation_map(states)
    return FreeRun(states, sample.diverged_at, observed=seen)
