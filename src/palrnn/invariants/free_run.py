"""The free run that every measurement starts from: one rollout, and one rule for a model that diverges.

The rule: a run that diverged has no invariants. It says after how many steps, and keeps the states before.
"""

from __future__ import annotations

from dataclasses import dataclass

from palrnn.engine.checks import Floats, as_int, as_shape
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
    observation_noise: bool = False,
    seed: int = 0,
) -> FreeRun:
    """Return ``steps`` states after ``discard``, from the observation ``x1 (N,)``.

    A surrogate runs with hard gates and without noise; a `PALRNN` is sampled with gate and process noise, and
    is seen with observation noise only if ``observation_noise``.
    """
    drift = drift_of(model)
    start = as_shape(x1, "x1", (drift.observed_dim,))
    steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
    if not isinstance(model, PALRNN):
        run = rollout_from(drift, drift.embed(start), steps, discard)
        return FreeRun(run.states, run.diverged_at, observed=run.states[:, : drift.observed_dim])
    sample = model.sample(start, max(2, discard + steps), seed)
    states, seen = (array[discard : discard + steps] for array in (sample.states, sample.observations))
    seen = seen if observation_noise else model.observation_map(states)
    return FreeRun(states, sample.diverged_at, observed=seen)
