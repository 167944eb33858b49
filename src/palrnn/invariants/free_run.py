"""The free run that every measurement starts from: one rollout, and one rule for a model that diverges.

The rule: a run that diverged has no invariants. It says after how many steps, and keeps the states before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_shape
from palrnn.invariants.drive import checked_drive, drive_offsets
from palrnn.model import PALRNN, Rollout, Surrogate, drift_of
from palrnn.model.engine import rollout_from


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
