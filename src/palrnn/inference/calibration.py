"""Bands as wide as they have to be: forecasts of what came already, and what these say about the width.

A model is not the system, and its noise is a summary: bands of its own paths hold less than they say, or
more.
`hindcasts` makes forecasts from several places of a series that is known, each from the rows before it alone.
How much wider their bands had to be to hold what came, by lead, is a `BandCalibration`: a split conformal
prediction (Vovk et al., 2005) with the factor on the width as its score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_instance, as_int, as_series
from palrnn.engine.gaps import whole_rows
from palrnn.engine.seeds import kernel_seed
from palrnn.inference.forecasts import Forecast
from palrnn.inference.record import FilterDiedError
from palrnn.inference.stepper import Stepper
from palrnn.model import PALRNN, Surrogate

# leads that are taken together with one: this part of it to either side, and no fewer than these
_PART, _LEAST = 0.2, 3
# seeds of forecasts are below this
_SEEDS = 1_000_000_000


@dataclass(frozen=True, eq=False)
class BandCalibration:
    """How much wider the bands of a forecast must be, ``factors (steps,)`` by lead; less than 1 is narrower.

    They were found at one ``level`` from ``origins`` forecasts of what was known. A factor is infinite where
    so many of these had diverged that no width would have been enough.
    """

    factors: Floats = field(repr=False)
    level: float
    origins: int

    @classmethod
    def fit(cls, made: Iterable[tuple[Forecast, ArrayLike]], level: float = 0.9) -> BandCalibration:
        """Return the factors with which central bands of ``level`` hold what came.

        ``made`` are forecasts of one length and the rows ``(steps, N)`` that came, NaN where nothing was
        seen. The factor of a lead is the quantile (1 + 1/K) level, over the K forecasts, all coordinates and
        leads within a fifth of it, of the factors that each value would have needed: infinite ones for what
        came where all paths had diverged.
        """
        share = as_float(level, "level", above=0.0, most=1.0)
        needed = [_needed(ahead, truth, share) for ahead, truth in made]
        if not needed or len({part.shape for part in needed}) > 1:
            raise ValueError("made must be forecasts of one length, one at least")
        table = np.stack(needed)
        count, steps = table.shape[:2]
        rank, factors = min(1.0, share * (1.0 + 1.0 / count)), np.ones(steps)
        for lead in range(steps):
            width = max(_LEAST, round(_PART * (lead + 1)))
            near = table[:, max(0, lead - width) : lead + width + 1]
            near = near[~np.isnan(near)]
            factors[lead] = _quantile(near, rank) if near.size else 1.0
        return cls(factors, share, count)

    def __call__(self, forecast: Forecast) -> Forecast:
        """Return ``forecast`` with its paths spread by the factors around their median, lead by lead."""
        steps = as_instance(forecast, "forecast", Forecast).paths.shape[1]
        if steps > len(self.factors):
            raise ValueError(f"forecast must have at most {len(self.factors)} steps, got {steps}")
        middle = forecast.quantile(0.5)
        away = forecast.paths - middle
        with np.errstate(invalid="ignore"):
            # no factor moves what is in the middle
            moved = np.where(away == 0.0, 0.0, self.factors[:steps, None] * away)
        return Forecast(middle + moved, forecast.varies)

    def __repr__(self) -> str:
        low, high = self.factors.min(), self.factors.max()
        return (
            f"BandCalibration({self.level:.0%} bands {low:.3g} to {high:.3g} times as wide, over "
            f"{len(self.factors)} leads, from {self.origins} forecasts)"
        )


def hindcasts(
    model: PALRNN,
    x: ArrayLike,
    steps: int,
    *,
    origins: int = 40,
    seen: int = 60,
    paths: int = 200,
    drifts: Sequence[Surrogate] | None = None,
    seed: int = 0,
    **settings: Any,
) -> list[tuple[Forecast, Floats]]:
    """Return forecasts within ``x (T, N)``, in the model's coordinates, with the rows that came.

    Each follows ``seen`` rows that are filtered, the first of them without a gap; ``origins`` of them are
    evenly spaced. Those whose rows the filter loses are left out. The other arguments are those of
    `Stepper` and of its ``forecast``.
    """
    rows = as_series(x, dim=as_instance(model, "model", PALRNN).drift.observed_dim, allow_nan=True)
    ahead, before = as_int(steps, "steps", least=1), as_int(seen, "seen", least=2)
    found: list[tuple[Forecast, Floats]] = []
    for number, begin in enumerate(spaced(rows, before + ahead, as_int(origins, "origins", least=1))):
        part, own = rows[begin : begin + before], kernel_seed(seed, "hindcast", number) % _SEEDS
        try:
            how: dict[str, Any] = {"seed": own, "target": "exact"} | settings
            stepper = Stepper(model, part[0], **how)
            for row in part[1:]:
                stepper.update(row)
        except FilterDiedError:
            continue
        made = stepper.forecast(ahead, paths=paths, seed=own, drifts=drifts)
        found.append((made, rows[begin + before : begin + before + ahead]))
    return found


def spaced(x: Floats, length: int, count: int) -> Any:
    """Return up to ``count`` rows without gaps, evenly spaced, that ``length - 1`` others follow."""
    possible = np.flatnonzero(whole_rows(x)[: max(0, len(x) - length + 1)])
    if not len(possible):
        return possible
    return np.unique(possible[np.linspace(0, len(possible) - 1, count).astype(np.int64)])


def _needed(forecast: Forecast, truth: ArrayLike, level: float) -> Floats:
    """Return the factor on either half of the band that each value needs, ``(steps, N)``.

    NaN where nothing was seen, or the band has no width: a factor says nothing there. Infinite where all
    paths had diverged, which `Forecast.coverage` counts as a miss.
    """
    seen = np.asarray(truth, dtype=np.float64)
    if seen.shape != forecast.paths.shape[1:]:
        raise ValueError(f"truth must have shape {forecast.paths.shape[1:]}, got {seen.shape}")
    (low, high), middle = forecast.band(level), forecast.quantile(0.5)
    half = np.where(seen >= middle, high - middle, middle - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(half > 0.0, np.abs(seen - middle) / half, np.nan)
    gone = np.isnan(forecast.paths).all(axis=0) & ~np.isnan(seen)
    return np.where(gone, np.inf, needed)


def _quantile(values: Floats, rank: float) -> float:
    """Return the quantile of ``values``, some of which may be infinite."""
    # linear interpolation looks no further than this one
    top = np.sort(values)[math.ceil(rank * (len(values) - 1))]
    return float(top if np.isinf(top) else np.quantile(np.minimum(values, top), rank))
