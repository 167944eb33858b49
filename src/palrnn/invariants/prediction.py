"""Forecasts: how far off is the model n steps ahead, and how long is it of use?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_floats, as_int, as_series, as_shape
from palrnn.engine.gaps import first_whole_row, refuse_empty_columns, whole_rows
from palrnn.engine.kernel import pin_blas
from palrnn.model import PALRNN, Surrogate, drift_of
from palrnn.model.engine import step
from palrnn.model.inputs import checked_inputs, offsets

_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class PredictionError:
    """Forecast errors of free-running rollouts from embedded observations.

    ``mse (n,)`` is the squared error 1, ..., n steps ahead, mean over starts and dimensions; ``valid_steps
    (S,)`` the number of steps for which each of S evenly spaced starts stays within ``threshold`` (at most
    ``horizon``: ``censored`` is the fraction that reached it); ``valid_time`` its mean in Lyapunov times, or
    None without an exponent.
    """

    mse: Floats
    valid_steps: Floats
    valid_time: float | None
    horizon: int
    threshold: float

    @property
    def censored(self) -> float:
        """The fraction of starts whose forecast was still valid at the horizon."""
        return float((self.valid_steps >= self.horizon).mean())

    def __repr__(self) -> str:
        times = "" if self.valid_time is None else f" = {self.valid_time:.3g} Lyapunov times"
        return (
            f"PredictionError(mse {self.mse[0]:.3g} at 1 step, {self.mse[-1]:.3g} at {len(self.mse)}; "
            f"valid for {self.valid_steps.mean():.4g} steps{times})"
        )


def prediction_error(
    model: Surrogate | PALRNN,
    x: ArrayLike,
    n: int = 20,
    *,
    inputs: ArrayLike | None = None,
    dt: float = 0.01,
    lyapunov: float | None = None,
    threshold: float = 0.4,
    horizon: int = 1000,
    starts: int = 200,
) -> PredictionError:
    """Return the forecast error of ``model`` on ``x (T, N)``, in the model's (standardised) coordinates.

    Every ``x[t]`` with ``t + n < T`` is embedded and run freely for ``n`` steps, with hard gates and without
    noise (of a PAL-RNN, the drift). The valid prediction time is the mean over ``starts`` evenly spaced
    starts of the first time at which ``|forecast - x|`` exceeds ``threshold`` times the root mean square
    deviation of ``x`` from its mean, looked for up to ``horizon`` steps (half of a shorter ``x``) and counted
    in Lyapunov times ``1 / lyapunov``, for the largest exponent of the true system per unit of time.

    With gaps (NaN), forecasts start at rows that have none, and are compared with what was seen. A driven
    model is given ``inputs (T, K)``, also those after the start of a forecast.
    """
    drift = drift_of(model)
    n = as_int(n, "n", least=1)
    series = as_series(x, min_steps=n + 1, dim=drift.observed_dim, allow_nan=True)
    refuse_empty_columns([series], "x")
    dt, threshold = as_float(dt, "dt", above=0.0), as_float(threshold, "threshold", above=0.0)
    longest = len(series) - 1 - first_whole_row(series, "x")
    # half of a short series, so that there are starts for the other half
    horizon = min(as_int(horizon, "horizon", least=1), max(1, (longest + 1) // 2))
    possible = _starts(series, horizon)
    starts = min(as_int(starts, "starts", least=1), len(possible))
    exponent = None if lyapunov is None else as_float(lyapunov, "lyapunov", above=0.0)
    pushes = offsets(drift, checked_inputs(drift, inputs, len(series)))
    pin_blas()
    chosen = possible[np.linspace(0, len(possible) - 1, starts).astype(np.int64)]
    valid = _valid_steps(drift, series, pushes, chosen, horizon, threshold)
    valid_time = None if exponent is None else float(valid.mean()) * dt * exponent
    return PredictionError(_mean_squares(drift, series, pushes, n), valid, valid_time, horizon, threshold)


def valid_prediction_time(
    forecast: ArrayLike,
    truth: ArrayLike,
    *,
    dt: float = 1.0,
    lyapunov: float | None = None,
    threshold: float = 0.4,
    scale: ArrayLike | None = None,
) -> float:
    """Return how long ``forecast (n, N)`` is of use against ``truth (n, N)``, from one step ahead to n.

    That is the time up to the last step before the error

        abs(forecast_t - truth_t) / sqrt(sum_i scale_i^2)

    first exceeds ``threshold``; ``n dt`` if it never does, and 0 if it does in the first step. ``scale (N,)``
    is the deviation of each coordinate in the long run, by default that of ``truth``. With the largest
    exponent ``lyapunov > 0`` of the true system per unit of time it is counted in Lyapunov times
    ``1 / lyapunov``, in which forecasts of different systems can be compared (Vlachas et al., 2020);
    otherwise in units of time, of which a step takes ``dt``. Where the truth was not seen (NaN) nothing is
    compared, and a forecast that has diverged (NaN) is of no use.
    """
    made, seen = (as_floats(v, n, allow_nan=True) for v, n in ((forecast, "forecast"), (truth, "truth")))
    if seen.ndim != 2 or not seen.size:
        raise ValueError(f"truth must be (n, N) with n and N >= 1, got {seen.shape}")
    if made.shape != seen.shape:
        raise ValueError(f"forecast must have the shape of truth, {seen.shape}, got {made.shape}")
    step, bound = as_float(dt, "dt", above=0.0), as_float(threshold, "threshold", above=0.0)
    unit = step if lyapunov is None else step * as_float(lyapunov, "lyapunov", above=0.0)
    if scale is None:
        refuse_empty_columns([seen], "truth")
    else:
        spread = as_shape(scale, "scale", (seen.shape[1],))
    # in units of the largest number, whose square may be too large or too small to be told
    largest = np.abs(seen[~np.isnan(seen)]).max(initial=0.0) or 1.0
    made, seen = made / largest, seen / largest
    with np.errstate(over="ignore"):
        variance = np.nanvar(seen, axis=0) if scale is None else (spread / largest) ** 2
    failed = np.flatnonzero(_too_far(made, seen, variance, bound))
    return float(failed[0] if failed.size else len(seen)) * unit


def _too_far(forecast: Floats, truth: Floats, variance: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return whether each row of a forecast is farther from the truth than ``threshold`` deviations."""
    with np.errstate(over="ignore"):  # what overflows is too far
        bound = threshold**2 * np.where(np.isnan(truth), 0.0, variance).sum(axis=1)
        return np.asarray(~(_squares(forecast, truth).sum(axis=1) <= bound))


def _starts(series: Floats, ahead: int) -> NDArray[np.int64]:
    """Return the rows without a gap from which ``ahead`` rows follow."""
    starts = np.flatnonzero(whole_rows(series)[: len(series) - ahead])
    if not len(starts):
        raise ValueError(f"x must have a row without gaps that {ahead} rows follow, has none")
    return starts


def _mean_squares(drift: Surrogate, series: Floats, pushes: Floats | None, n: int) -> Floats:
    total, counts, starts = np.zeros(n), np.zeros(n), _starts(series, n)
    for first in range(0, len(starts), _CHUNK):
        begin = starts[first : first + _CHUNK]
        for ahead, seen in enumerate(_forecasts(drift, series, pushes, begin, n), start=1):
            total[ahead - 1] += _squares(seen, series[begin + ahead]).sum()
            counts[ahead - 1] += np.count_nonzero(~np.isnan(series[begin + ahead]))
    # nothing seen that far ahead of any start: nothing is known about the error there
    return np.where(counts > 0, total / np.maximum(counts, 1.0), np.nan)


def _valid_steps(
    drift: Surrogate,
    series: Floats,
    pushes: Floats | None,
    begin: NDArray[np.int64],
    horizon: int,
    threshold: float,
) -> Floats:
    variance = np.nanvar(series, axis=0)
    valid = np.full(len(begin), float(horizon))
    for ahead, seen in enumerate(_forecasts(drift, series, pushes, begin, horizon), start=1):
        # a step counts only if all before it did
        failed = (valid == horizon) & _too_far(seen, series[begin + ahead], variance, threshold)
        valid[failed] = ahead - 1
        if (valid < horizon).all():
            break
    return valid


def _forecasts(
    drift: Surrogate, series: Floats, pushes: Floats | None, begin: NDArray[np.int64], n: int
) -> Iterator[Floats]:
    """Yield the forecasts 1, ..., n steps ahead of the rows ``begin (S,)``; ``pushes (T, M)`` are C s."""
    z = drift.embed(series[begin])
    for ahead in range(n):
        # an unstable model overflows on its way; its error is then infinite, which is the truth
        with np.errstate(over="ignore", invalid="ignore"):
            z = step(drift, z)
            if pushes is not None:
                z = z + pushes[begin + ahead]
        yield z[:, : drift.observed_dim]


def _squares(forecast: Floats, truth: Floats) -> Floats:
    """Squared errors: 0 where the truth was not seen, infinite where the forecast has overflown."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (forecast - truth) ** 2
    return np.where(np.isnan(truth), 0.0, np.where(np.isnan(squares), np.inf, squares))
