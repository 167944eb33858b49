"""Observation noise."""

from __future__ import annotations

from numpy.typing import ArrayLike

from palrnn.data.standardize import mean_and_deviation
from palrnn.engine.checks import Floats, as_float, as_series, as_shape
from palrnn.engine.seeds import generator


def add_observation_noise(
    x: ArrayLike, std: float, *, scale: ArrayLike | None = None, seed: int = 0
) -> Floats:
    """Return ``x + std * diag(scale) * eta`` with standard normal ``eta``, a new ``(T, N)`` array.

    ``scale (N,)`` is the deviation of the training part, so that ``std`` is in standardised units; by default
    the deviation of ``x`` itself.
    """
    series = as_series(x, min_steps=1)
    std = as_float(std, "std", least=0.0)
    spread = mean_and_deviation(series)[1] if scale is None else as_shape(scale, "scale", (series.shape[1],))
    if (spread < 0).any():
        raise ValueError(f"scale must be >= 0, got {spread.min():g}")
    # a stream of its own: with the seed that simulated x, the noises must not be the system's own again
    eta = generator(seed, "observation noise").standard_normal(series.shape)
    return series + std * spread * eta
