"""What a model makes of a stretch of data: forced as in training, and left alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.invariants.free_run import free_run
from palrnn.model import BOUND, Forcing, Surrogate
from palrnn.model.engine import step
from palrnn.model.inputs import offsets


@dataclass(frozen=True, eq=False)
class Tracking:
    """A stretch of data with what the model makes of it, all raw ``(S, N)``.

    ``forced`` is pulled to the data as ``forcing`` says; ``free`` runs alone from the first observation. NaN
    stands where the state has diverged.
    """

    truth: Floats
    forced: Floats
    free: Floats
    forcing: Forcing

    def __repr__(self) -> str:
        return f"Tracking({len(self.truth)} steps of {self.truth.shape[1]} coordinates, {self.forcing!r})"


def tracking(
    model: Surrogate, x: Floats, forcing: Forcing, standardizer: Standardizer, inputs: Floats | None = None
) -> Tracking:
    """Return the forced and the free run along standardised ``x (S, N)``, in raw coordinates.

    Only what was seen is forced; the first row must have no gap (NaN). ``inputs (S, K)`` drive both runs.
    """
    pushes = offsets(model, inputs)
    seen, strengths = model.observed_dim, forcing.final.strengths(len(x))
    forced, free = np.full_like(x, np.nan), np.full_like(x, np.nan)
    z, forced[0] = model.embed(x[0]), x[0]
    for t in range(len(x) - 1):
        if strengths[t] > 0:  # a strength of 1 also brings back what has diverged
            forced_to = x[t] if strengths[t] == 1 else z[:seen] + strengths[t] * (x[t] - z[:seen])
            z[:seen] = np.where(np.isnan(x[t]), z[:seen], forced_to)
        z = step(model, z) if (np.abs(z) <= BOUND).all() else np.full_like(z, np.nan)
        z = z if pushes is None else z + pushes[t]
        forced[t + 1] = np.where(np.abs(z[:seen]) <= BOUND, z[:seen], np.nan)
    alone = free_run(model, x[0], len(x), inputs=inputs).observed
    free[: len(alone)] = alone
    raw = [standardizer.inverse(part) for part in (x, forced, free)]
    return Tracking(raw[0], raw[1], raw[2], forcing)
