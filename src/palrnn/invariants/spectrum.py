"""D_H: do two trajectories move at the same frequencies?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_series
from palrnn.engine.gaps import refuse_empty_columns

_LEAST, _PARTS = 16, 6


def power_spectrum(x: ArrayLike, *, sigma: float = 20.0) -> Floats:
    """Return the smoothed power spectrum of each column of ``x (T, N)``, summing to 1: ``(T // 2 + 1, N)``.

    The mean is removed, and the periodogram is smoothed by a Gaussian of ``sigma`` frequency bins, but never
    of more than a sixth of the spectrum, which counts below 240 steps; below 16 there is no spectrum to speak
    of. A constant column has none and gives zeros. A gap (NaN) counts as the mean of what was seen.
    """
    series = as_series(x, allow_nan=True)
    refuse_empty_columns([series], "x")
    if len(series) < _LEAST:
        raise ValueError(f"x must have {_LEAST} steps for a spectrum, got {len(series)}")
    # three deviations to both sides are the whole spectrum: a wider kernel would leave nothing of it
    sigma = min(as_float(sigma, "sigma", least=0.0), (len(series) // 2 + 1) / _PARTS)
    gaps = np.isnan(series)
    if gaps.any():
        series = np.where(gaps, np.nanmean(series, axis=0), series)
    centred = series - series.mean(axis=0)
    # what is left of a constant column is rounding, whose spectrum would look like noise
    # scaled by the largest deviation first: squares of very small numbers would be zero
    span = np.abs(centred).max(axis=0)
    alive = span > np.maximum(1e-12 * np.abs(series).max(axis=0), np.finfo(np.float64).tiny)
    unit = centred / np.where(alive, span, 1.0)
    power = np.abs(np.fft.rfft(unit / np.where(alive, unit.std(axis=0), 1.0), axis=0)) ** 2
    # a kernel far narrower than a bin is no smoothing
    smooth = _smoothed(power, sigma) if sigma > 1e-3 else power
    return np.asarray(np.where(alive, smooth / np.where(alive, smooth.sum(axis=0), 1.0), 0.0))


def _smoothed(power: Floats, sigma: float) -> Floats:
    """Return ``power (F, N)`` smoothed by a Gaussian of four deviations to both sides, mirrored at its ends.

    As `scipy.ndimage.gaussian_filter1d` does it, whose import takes longer than all spectra of a score card.
    """
    reach = int(4.0 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    padded = np.pad(power, ((reach, reach), (0, 0)), mode="symmetric")
    columns = [np.convolve(column, weights / weights.sum(), mode="valid") for column in padded.T]
    return np.stack(columns, axis=1)


def spectrum_distances(generated: ArrayLike, reference: ArrayLike, *, sigma: float = 20.0) -> Floats:
    """Return the Hellinger distance of the power spectra in each dimension, ``(N,)``, from 0 to 1.

    H^2 = 1/2 sum_f (sqrt p_f - sqrt q_f)^2, which is 1 - sum_f sqrt(p_f q_f) without its cancellation. The
    longer series is cut to the length of the shorter, so that frequencies agree. Where one of the two is
    constant the distance is 1, where both are it is 0.

    What is missing (NaN) in one series is left out of the other, too: gaps distort both spectra alike, so
    that a model is not blamed for them. They do make the spectra more alike than they are without gaps.
    """
    truth = as_series(reference, "reference", allow_nan=True)
    model = as_series(generated, "generated", dim=truth.shape[1], allow_nan=True)
    refuse_empty_columns([truth], "reference")
    refuse_empty_columns([model], "generated")
    length = min(len(truth), len(model))
    if length < _LEAST:
        raise ValueError(f"generated and reference must have {_LEAST} steps for a spectrum, got {length}")
    sigma = as_float(sigma, "sigma", least=0.0)
    truth, model = truth[:length], model[:length]
    gaps = np.isnan(truth) | np.isnan(model)
    if gaps.any():
        refuse_empty_columns([np.where(gaps, np.nan, truth)], "reference")
        truth, model = np.where(gaps, np.nan, truth), np.where(gaps, np.nan, model)
    p, q = (power_spectrum(series, sigma=sigma) for series in (truth, model))
    distance = np.sqrt(0.5 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=0))
    still = p.any(axis=0) != q.any(axis=0)
    return np.asarray(np.where(still, 1.0, np.minimum(distance, 1.0)))


def spectrum_distance(generated: ArrayLike, reference: ArrayLike, *, sigma: float = 20.0) -> float:
    """Return D_H: the mean over dimensions of `spectrum_distances`, smoothed over ``sigma`` frequencies."""
    return float(spectrum_distances(generated, reference, sigma=sigma).mean())
