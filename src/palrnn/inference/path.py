"""The model given one gate path: a linear-Gaussian state-space model, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_floats, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.inference import reference_smoothing
from palrnn.inference.kernels import smoothing
from palrnn.inference.particle_filter import checked_series
from palrnn.inference.path_arrays import padded, path_arrays
from palrnn.inference.record import words_of
from palrnn.model import ALRNN, PALRNN
from palrnn.model.inputs import checked_inputs, offsets


class Path(NamedTuple):
    """What a walk along one gate path keeps for each time (see `kernels.smoothing`); D is M padded.

    ``filtered_mean (T, D)``, ``filtered_cov (T, D, D)``: the belief over z_t given x_{1:t} and earlier gates.
    ``mean (T, D)``: the same given the gate of t too, where the target conditions on it.
    ``predicted (T, D)``: the mean of z_t before x_t. ``backward (T, 2 D, D)``: the backward kernels.
    """

    filtered_mean: Floats
    filtered_cov: Floats
    mean: Floats
    predicted: Floats
    backward: Floats


def empty_path(model: PALRNN, x: Floats) -> Path:
    """Return the room for a walk over ``x (T, N)``, with the belief at the start in place."""
    times, dim = x.shape[0], padded(model.drift.latent_dim)
    path = Path(
        np.zeros((times, dim)),
        np.zeros((times, dim, dim)),
        np.zeros((times, dim)),
        np.zeros((times, dim)),
        np.zeros((times, 2 * dim, dim)),
    )
    latent = np.arange(model.drift.latent_dim)
    path.filtered_mean[0, latent] = model.drift.embed(x[0])
    path.filtered_cov[0, latent, latent] = model.initial_variances
    return path


@dataclass(frozen=True, eq=False)
class PathPosterior:
    """Everything about the states given one gate path and the data.

    - ``log_likelihood``: log p(x_2, ..., x_T | x_1, codes), with the gates taken as given
    - ``filtered_mean (T, M)``, ``filtered_cov (T, M, M)``: given x_{1:t}
    - ``mean (T, M)``, ``cov (T, M, M)``: given all of x
    - ``lag_cov (T-1, M, M)``: Cov(z_t, z_{t+1}) given all of x
    """

    log_likelihood: float
    filtered_mean: Floats = field(repr=False)
    filtered_cov: Floats = field(repr=False)
    mean: Floats = field(repr=False)
    cov: Floats = field(repr=False)
    lag_cov: Floats = field(repr=False)


def path_posterior(
    model: PALRNN,
    x: ArrayLike,
    codes: ArrayLike,
    *,
    inputs: ArrayLike | None = None,
    gate_inputs: ArrayLike | None = None,
) -> PathPosterior:
    """Return the exact posterior of the states given ``x (T, N)`` and the gates ``codes (T-1, P)``.

    Kalman filter and Rauch-Tung-Striebel smoother. ``inputs (T, K)`` are those that drive the model, where it
    has any. Without ``gate_inputs``, the gates enter only through the transitions that they select, as in the
    paper's filter; that they were drawn from the states is not used. With the noisy ``gate_inputs (T-1, P)``,
    of which the codes are the signs, states are also conditioned on these, as under ``target="exact"``
    (`Smoothed` has both); ``log_likelihood`` is then the sum of log p(x_{t+1} | x_{1:t}, gate inputs up to
    t).
    """
    pin_blas()
    series = checked_series(model, x)
    gates = as_floats(codes, "codes")
    wanted = (len(series) - 1, model.drift.gated)
    if gates.shape != wanted:
        raise ValueError(f"codes must have shape {wanted}, got {gates.shape}")
    drive = offsets(model, checked_inputs(model, inputs, len(series)))
    if gate_inputs is None:
        return _path_posterior(model.drift, model, series, drive, gates > 0, None)
    given = as_shape(gate_inputs, "gate_inputs", wanted)
    if not np.array_equal(given > 0, gates > 0):
        raise ValueError("gate_inputs must be positive where codes are open, and only there")
    return _path_posterior(model.drift, model, series, drive, gates > 0, given)


@singledispatch
def _path_posterior(
    drift: Any,
    model: PALRNN,
    x: Floats,
    drive: Floats | None,
    codes: NDArray[np.bool_],
    gate_inputs: Floats | None,
) -> PathPosterior:
    """Solve with what there is for this kind of ``drift``: `reference_smoothing`, or what is registered."""
    given = None if gate_inputs is None else gate_inputs[None]
    path = reference_smoothing.walk(model, x, codes[None], given, drive)
    mean, cov, lagged = reference_smoothing.smoothed_moments(path)
    found = (path.filtered_mean, path.filtered_cov, mean, cov, lagged)
    return PathPosterior(float(path.log_likelihood[0]), *(array[:, 0] for array in found))


@_path_posterior.register
def _(
    drift: ALRNN,
    model: PALRNN,
    x: Floats,
    drive: Floats | None,
    codes: NDArray[np.bool_],
    gate_inputs: Floats | None,
) -> PathPosterior:
    if not model.is_standard:
        return _path_posterior.dispatch(object)(drift, model, x, drive, codes, gate_inputs)
    path = empty_path(model, x)
    given = np.full(codes.shape, np.nan) if gate_inputs is None else gate_inputs
    loglik = smoothing.walk(path_arrays(model, drive), x, words_of(codes), given, 0, path)
    return _posterior(path, loglik, model.drift.latent_dim)


def _posterior(path: Path, loglik: float, latent: int) -> PathPosterior:
    mean, cov = np.zeros_like(path.mean), np.zeros_like(path.filtered_cov)
    lagged = np.zeros_like(cov[1:])
    smoothing.smoothed_moments(path, mean, cov, lagged)
    return PathPosterior(
        float(loglik),
        path.filtered_mean[:, :latent].copy(),
        path.filtered_cov[:, :latent, :latent].copy(),
        mean[:, :latent].copy(),
        cov[:, :latent, :latent].copy(),
        lagged[:, :latent, :latent].copy(),
    )
