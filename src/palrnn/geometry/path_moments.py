"""The model given one gate path: its arrays, and the posterior moments that scores are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import HUGE, Floats
from palrnn.engine.kernel import pin_blas
from palrnn.geometry.kernels import path as kernels
from palrnn.inference import FilterDiedError
from palrnn.model import PALRNN
from palrnn.model.inputs import offsets


class LinearPath(NamedTuple):
    """A PAL-RNN whose gates are given: a linear-Gaussian state-space model, as plain arrays.

    ``J (T-1, M, M)``, ``b (T-1, M)``, ``Q (M, M)`` move the state, ``start (M,)`` and ``spread (M, M)``
    begin it; ``B (N, M)``, ``d (N,)``, ``R (N, N)`` observe it as ``x (T, N)``, NaN where it was not; ``G
    (P, M)``, ``g (P,)`` and ``gate_variance`` are those of the noisy gate inputs.
    """

    J: Floats
    b: Floats
    Q: Floats
    start: Floats
    spread: Floats
    B: Floats
    d: Floats
    R: Floats
    x: Floats
    G: Floats
    g: Floats
    gate_variance: float


class PathMoments(NamedTuple):
    """Posterior moments given one gate path and all data (the formulas are those of `kernels.path`).

    - ``mean (T, M)``, ``cov (T, M, M)``: of the states z_t
    - ``gain (T-1, M, M)``: K_t, the slope of E[z_t | z_{t+1}]
    - ``residual (T-1, E)``: mu_t, the mean of the weighted residuals eps_t
    - ``slope (T-1, E, M)``: that of E[eps_t | z_{t+1}]
    - ``cross (T-1, E, M)``: Cov(eps_t, z_t)
    - ``known (T-1, E, E)``: Lambda - Var(eps_t)
    """

    mean: Floats
    cov: Floats
    gain: Floats
    residual: Floats
    slope: Floats
    cross: Floats
    known: Floats

    @property
    def expected(self) -> Floats:
        """E[eps_t zeta_t^T], ``(T-1, E, M+1)``, with the features zeta_t = [z_t, 1]."""
        mean = self.mean[:-1]
        square = self.cross + self.residual[:, :, None] * mean[:, None, :]
        return np.concatenate([square, self.residual[:, :, None]], axis=2)

    @property
    def second(self) -> Floats:
        """E[zeta_t zeta_t^T], ``(T-1, M+1, M+1)``."""
        features = np.concatenate([self.mean[:-1], np.ones((len(self.gain), 1))], axis=1)
        second = features[:, :, None] * features[:, None, :]
        second[:, :-1, :-1] += self.cov[:-1]
        return second


def linear_path(
    model: PALRNN, x: Floats, codes: NDArray[np.bool_], inputs: Floats | None = None
) -> LinearPath:
    """Return the arrays of ``model`` on ``x (T, N)`` given the gates ``codes (T-1, P)``, driven by ``inputs
    (T, K)``."""
    drift, drive = model.drift, offsets(model, inputs)
    J, b = drift.affine(codes)
    b = b if drive is None else b + drive[:-1]
    G, g = drift.gate_map()
    reads = model.observation_map
    arrays = (
        *(J, b, model.process_covariance, drift.embed(x[0]), model.initial_covariance),
        *(reads.B, reads.d, model.observation_covariance, x, G, g),
    )
    # writable, also what a model holds read-only: one kernel serves all families then
    plain = (np.require(array, np.float64, ("C", "W")) for array in arrays)
    return LinearPath(*plain, float(model.gate_std) ** 2)  # type: ignore[arg-type, call-arg]


def path_moments(
    path: LinearPath, inputs: Floats | None = None, *, with_gates: bool = False
) -> tuple[float, PathMoments]:
    """Return log p(x, inputs | x_1, codes) and the moments given the gates, and their ``inputs (T-1, P)`` if
    given.

    ``with_gates`` appends the weighted residuals of the gate inputs, P more rows, to those of the drift.
    """
    given = np.empty((len(path.J), 0)) if inputs is None else np.array(inputs)
    loglik, beliefs = filtered_beliefs(path, given)
    times, dim = path.x.shape[0], len(path.start)
    rows = dim + (given.shape[1] if with_gates else 0)
    shapes = ((rows,), (rows, dim), (rows, dim), (rows, rows))
    moments = PathMoments(
        np.empty((times, dim)),
        np.empty((times, dim, dim)),
        np.empty((times - 1, dim, dim)),
        *(np.empty((times - 1, *shape)) for shape in shapes),
    )
    try:
        kernels.smooth_path(path, *beliefs, moments)  # type: ignore[call-arg]
        if with_gates:
            kernels.gate_moments(path, given, moments)
    except np.linalg.LinAlgError:
        raise explosion() from None
    if not (np.abs(moments.mean).max() < HUGE and np.abs(moments.cov).max() < HUGE):
        raise explosion()
    return loglik, moments


def filtered_beliefs(path: LinearPath, inputs: Floats | None = None) -> tuple[float, tuple[Floats, ...]]:
    """Return log p(x, inputs | x_1, codes) and the Kalman filter's beliefs.

    These are the means and predicted means ``(T, M)``, and the covariances and predicted ones ``(T, M, M)``;
    the first of each pair is given x and the inputs up to its own time.
    """
    pin_blas()
    times, dim = path.x.shape[0], len(path.start)
    given = np.empty((times - 1, 0)) if inputs is None else inputs
    beliefs = tuple(np.zeros((times, dim, dim)[:n]) for n in (2, 2, 3, 3))
    loglik = float(kernels.filter_path(path, given, *beliefs))
    if not np.isfinite(loglik):
        raise explosion()
    return loglik, beliefs


def explosion() -> FilterDiedError:
    """Return the error for states, or scores, that are beyond all bounds."""
    return FilterDiedError(
        "the states given a gate path are beyond all bounds, and their covariances no longer positive"
        " definite: the model explodes on this segment"
    )
