"""Complete and observed information given one gate path, from its moments: for any family, and fast for
AL-RNNs.

Everything here is without the second derivatives of the map (see `score_map.bend`), which AL-RNNs do not
have.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.geometry.kernels import scores as kernels
from palrnn.geometry.path_moments import PathMoments
from palrnn.geometry.score_map import ScoreMap, entries, open_units
from palrnn.model import ALRNN, Surrogate

Codes = NDArray[np.bool_]
# parameters that are carried together: large enough products, small enough for the second-level cache
_BUNDLE = 48


def observed_product(moments: PathMoments, scores: ScoreMap, v: Floats) -> Floats:
    """Return the product of the observed information with ``v (p,)``, in O(T M^3) operations."""
    pushed = scores.push(v)
    out = np.empty_like(pushed)
    kernels.products(moments, pushed, out)
    return scores.pull(out)


@singledispatch
def observed_matrix(drift: Surrogate, codes: Codes, moments: PathMoments, scores: ScoreMap) -> Floats:
    """Return the observed information ``(p, p)``: one product for each parameter."""
    matrix = np.stack([observed_product(moments, scores, v) for v in np.eye(scores.size)])
    return 0.5 * (matrix + matrix.T)


@observed_matrix.register
def _(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap) -> Floats:
    rows, columns, weights = entries(drift, codes, scores.inputs)
    half = np.empty((scores.size, scores.size))
    for first in range(0, scores.size, _BUNDLE):
        count = min(_BUNDLE, scores.size - first)
        part = np.zeros((scores.size, count))
        kernels.later_covariance(moments, rows, columns, weights, first, count, part)
        half[:, first : first + count] = part
    return -(half + half.T)


@singledispatch
def observed_trace(
    drift: Surrogate, codes: Codes, moments: PathMoments, scores: ScoreMap, lags: int | None
) -> float:
    """Return the trace of the observed information, from pairs of times up to ``lags`` apart (None: from
    all)."""
    return float(sum(observed_product(moments, scores, v) @ v for v in np.eye(scores.size)))


@observed_trace.register
def _(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap, lags: int | None) -> float:
    steps, dim = codes.shape[0], drift.latent_dim
    room = np.empty((2, steps, dim, dim))
    kept = steps if lags is None else lags
    return float(
        kernels.pair_trace(moments, open_units(drift, codes), _constants(codes, scores), kept, *room)
    )


def _constants(codes: Codes, scores: ScoreMap) -> Floats:
    """Return the features that are known, 1 and the inputs, of each transition: ``(T-1, 1+K)``."""
    one = np.ones((len(codes), 1))
    return one if scores.inputs is None else np.concatenate([one, scores.inputs], axis=1)


@singledispatch
def left_out(drift: Surrogate, codes: Codes, moments: PathMoments, scores: ScoreMap, lags: int) -> float:
    """Return a bound on what `observed_trace` leaves out with ``lags``: nothing, where pairs are not
    visited."""
    return 0.0


@left_out.register
def _(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap, lags: int) -> float:
    """By maximal correlation: |Cov(f, g)| <= rho sd(f) sd(g) for any functions f, g of two Gaussian vectors.

    rho is their largest canonical correlation (Gebelein, 1941), rho^2 for functions of the second degree.
    Scores at times t < s have to do with each other through z_{t+1} and z_s alone, so that f and g are their
    expectations given these, and rho is at most the product of those of the stretches in between.
    """
    mean, mu, gates = moments.mean[:-1], moments.residual, open_units(drift, codes)
    known = np.square(_constants(codes, scores)).sum(axis=1)
    forward = moments.slope @ moments.cov[1:], moments.gain @ moments.cov[1:]
    before = _variances(
        np.einsum("tia,tia->ti", forward[0], moments.slope),
        np.einsum("tja,tja->tj", forward[1], moments.gain),
        forward[0] @ moments.gain.transpose(0, 2, 1),
        *(mean, mu, gates, known),
    )
    weights = np.linalg.solve(moments.cov[:-1], moments.cross.transpose(0, 2, 1))
    after = _variances(
        np.einsum("tia,tai->ti", moments.cross, weights),
        np.diagonal(moments.cov[:-1], axis1=1, axis2=2),
        moments.cross,
        *(mean, mu, gates, known),
    )
    rho = np.linalg.norm(_stretches(moments, lags), 2, axis=(1, 2))
    bound, count = 0.0, len(codes)
    for degree in (0, 1):
        spread, sums = np.sqrt(before[degree]), np.concatenate([[0.0], np.cumsum(np.sqrt(after[degree]))])
        for t in range(count - lags - 1):
            product = 1.0
            for s in range(t + 1 + lags, count, lags):
                product *= rho[s - lags] ** (degree + 1)
                bound += 2.0 * product * spread[t] * (sums[min(s + lags, count)] - sums[s])
    return float(bound)


def _variances(
    eps: Floats, zeta: Floats, both: Floats, mean: Floats, mu: Floats, gates: Floats, known: Floats
) -> tuple[Floats, Floats]:
    """Return the summed variances of the parts of first and second degree of the products eps_i zeta_j,
    ``(T-1,)``.

    ``eps (T-1, M)`` and ``zeta (T-1, M)`` are variances, ``both (T-1, M, M)`` covariances, ``mean`` and
    ``mu`` means, ``known (T-1,)`` the summed squares of the features that are known.
    """
    first = 2.0 * both * mu[:, :, None] * mean[:, None, :]
    first += eps[:, :, None] * (mean**2)[:, None, :] + (mu**2)[:, :, None] * zeta[:, None, :]
    second = eps[:, :, None] * zeta[:, None, :] + both**2
    found = [
        np.einsum("tij,tj->t", part, gates) + np.trace(part, axis1=1, axis2=2) for part in (first, second)
    ]
    # rounding can take a sum of squares a little below zero
    return np.maximum(found[0] + known * eps.sum(axis=1), 0.0), np.maximum(found[1], 0.0)


def _stretches(moments: PathMoments, lags: int) -> Floats:
    """Return L_t^{-1} Cov(z_t, z_{t+lags}) L_{t+lags}^{-T}, ``(T-lags, M, M)``, with Var z_t = L_t L_t^T."""
    roots = np.linalg.cholesky(moments.cov)
    doubled = np.linalg.solve(roots[:-1], moments.gain @ roots[1:])
    found, size, length = np.zeros((0, 0, 0)), 1, 0
    while size <= lags:
        if lags & size:
            found = found[: len(doubled) - length] @ doubled[length:] if length else doubled
            length += size
        doubled, size = doubled[:-size] @ doubled[size:], 2 * size
    return found


@singledispatch
def complete_matrix(
    drift: Surrogate, codes: Codes, moments: PathMoments, scores: ScoreMap, precision: Floats
) -> Floats:
    """Return E[I_comp] = sum_t Psi_t^T (Lambda x E[zeta zeta^T]) Psi_t, ``(p, p)``."""
    total, each = np.zeros((scores.size, scores.size)), _second(moments, scores)
    second = np.zeros((scores.shape[0], *each.shape[1:]))
    np.add.at(second, scores.which, each)
    for c, features in enumerate(second):
        psi = scores.block(c)
        total += psi.T @ (np.kron(precision, features) @ psi)
    return total


def _second(moments: PathMoments, scores: ScoreMap) -> Floats:
    """Return E[f f^T] of the features f = [z, 1, s], ``(T-1, M+1+K, M+1+K)``."""
    if scores.inputs is None:
        return moments.second
    features = np.concatenate([moments.mean[:-1], np.ones((len(moments.gain), 1)), scores.inputs], axis=1)
    second = features[:, :, None] * features[:, None, :]
    dim = moments.cov.shape[1]
    second[:, :dim, :dim] += moments.cov[:-1]
    return second


@complete_matrix.register
def _(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap, precision: Floats) -> Floats:
    gram = _gram(drift, codes, moments, scores)
    rows, features = _features(drift)
    return precision[np.ix_(rows, rows)] * gram[np.ix_(features, features)]


@singledispatch
def complete_trace(
    drift: Surrogate, codes: Codes, moments: PathMoments, scores: ScoreMap, precision: Floats
) -> float:
    """Return the trace of E[I_comp]."""
    return float(np.trace(complete_matrix(drift, codes, moments, scores, precision)))


@complete_trace.register
def _(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap, precision: Floats) -> float:
    rows, features = _features(drift)
    return float(np.diag(precision)[rows] @ np.diag(_gram(drift, codes, moments, scores))[features])


def _gram(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap) -> Floats:
    """Return sum_t E[f f^T] of the features f = [D z, 1, z on the gated units, s] that all rows share."""
    dim, free = drift.latent_dim, drift.latent_dim - drift.gated
    at = np.r_[0 : dim + 1, free:dim, dim + 1 : dim + 1 + drift.input_dim]
    weights = np.ones((len(codes), len(at)))
    weights[:, free:dim] = codes
    second = _second(moments, scores)[:, at[:, None], at]
    return np.einsum("ta,tab,tb->ab", weights, second, weights, optimize=True)


def _features(drift: ALRNN) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the latent row of each parameter, and which of the features of `_gram` it multiplies."""
    dim, free = drift.latent_dim, drift.latent_dim - drift.gated
    rows, columns, _ = entries(drift, np.zeros((0, drift.gated), dtype=np.bool_))
    columns[free:dim] += dim + 1 - free
    units, which = np.divmod(np.arange(dim * drift.input_dim), max(1, drift.input_dim))
    return np.concatenate([rows, units]), np.concatenate([columns, dim + 1 + drift.gated + which])
