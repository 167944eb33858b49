"""Gaps filled in by the smoother, with bands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats, as_float, as_int
from palrnn.engine.gaps import first_whole_row
from palrnn.engine.seeds import generator
from palrnn.inference import rbpf, smooth
from palrnn.model import PALRNN

_NOISE = 1


@dataclass(frozen=True, eq=False)
class Imputed:
    """A series with its gaps filled in, all raw ``(T, N)``.

    ``values`` are what was seen, and where nothing was, the mean of what may have been, given all data;
    ``low`` and ``high`` hold what may have been seen there with probability ``coverage``, and are ``values``
    themselves elsewhere. ``missing`` tells where the gaps were. Rows before the first whole one stay gaps
    (NaN): nothing starts there. ``draws (S, T, N)`` are the series that means and bands are of.
    """

    values: Floats
    low: Floats
    high: Floats
    missing: NDArray[np.bool_]
    coverage: float
    draws: Floats = field(repr=False)

    def __repr__(self) -> str:
        share = self.missing.mean()
        return (
            f"Imputed({self.values.shape[0]} steps of {self.values.shape[1]} coordinates, {share:.1%} of the "
            f"values filled in, {self.coverage:.0%} bands from {len(self.draws)} draws)"
        )


def imputed(
    model: PALRNN,
    x: Floats,
    standardizer: Standardizer,
    *,
    coverage: float,
    paths: int,
    states_per_path: int,
    seed: int,
    inputs: Floats | None = None,
    **settings: Any,
) -> Imputed:
    """Return raw ``x (T, N)`` with its gaps filled in by draws of `smooth`, observation noise included.

    ``inputs (T, K)``, in the model's coordinates, drive it. ``settings`` are those of `rbpf`.
    """
    share = as_float(coverage, "coverage", above=0.0, most=1.0)
    paths, each = as_int(paths, "paths", least=1), as_int(states_per_path, "states_per_path", least=1)
    first = first_whole_row(x, "x")
    rows = standardizer.transform(x[first:])
    drive = None if inputs is None else inputs[first:]
    filtered = rbpf(model, rows, inputs=drive, seed=seed, **({"target": "exact"} | settings))
    drawn = smooth(filtered, paths=paths, states_per_path=each, seed=seed)
    states = drawn.states.reshape(-1, *drawn.states.shape[2:])
    seen = model.observation_map(states)
    noise = generator(seed, "impute", _NOISE).standard_normal(seen.shape)
    seen = standardizer.inverse(seen + noise @ model.observation.root(seen.shape[-1]).T)
    missing = np.isnan(x)
    draws = np.where(missing[first:], seen, x[first:])
    tail = 0.5 * (1.0 - share)
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    parts = [np.full((3, *x.shape), np.nan), np.full((len(draws), *x.shape), np.nan)]
    parts[0][:, first:] = draws.mean(axis=0), low, high
    parts[1][:, first:] = draws
    # what was seen stays as it was, to the last bit
    filled = np.where(missing, parts[0], x)
    return Imputed(filled[0], filled[1], filled[2], missing, share, parts[1])
