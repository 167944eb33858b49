"""Complete and observed information given one gate path, from its moments: for any family, and fast for AL-RNNs.

Everything here is without the second derivatives of the map (see `score_map.bend`), which AL-RNNs do not have.
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
    rows, columns, weights = entries(drift, codes)
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
    """Return the trace of the observed information, from pairs of times up to ``lags`` apart (None: from all)."""
    return float(sum(observed_product(moments, scores, v) @ v for v in np.eye(scores.size)))


@observed_trace.register
def _(drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap, lags: int | None) -> float:
    steps, dim = codes.shape[0], drift.latent_dim
    room = np.empty((2, steps, dim, dim))
    kept = steps if lags is None else lags
    return float(kernels.pair_trace(moments, open_units(drift, codes), kept, *room))


@singledispatch
def complete_matrix(
    drift: Surrogate, codes: Codes, moments: PathMoments, scores: ScoreMap, precision: Floats
) -> Floats:
    """Return E[I_comp] = sum_t Psi_t^T (Lambda x E[zeta zeta^T]) Psi_t, ``(p, p)``."""
    total, block = np.zeros((scores.size, scores.size)), int(np.prod(scores.shape[1:]))
    second = np.zeros((scores.shape[0], *moments.second.shape[1:]))
    np.add.at(second, scores.which, moments.second)
    for c, features in enumerate(second):
        psi = scores.matrix[c * block : (c + 1) * block]
        total += psi.T @ (np.kron(precision, features) @ psi)
    return total


@complete_matrix.register
def _(
    drift: ALRNN, codes: Codes, moments: PathMoments, scores: ScoreMap, precision: Floats
) -> Floats:
    gram = _gram(drift, codes, moments)
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
    return float(np.diag(precision)[rows] @ np.diag(_gram(drift, codes, moments))[features])


def _gram(drift: ALRNN, codes: Codes, moments: PathMoments) -> Floats:
    """Return sum_t E[f f^T] of the features f = [D z, 1, z on the gated units] that all rows share."""
    dim, free = drift.latent_dim, drift.latent_dim - drift.gated
    at = np.r_[0 : dim + 1, free:dim]
    weights = np.ones((len(codes), len(at)))
    weights[:, free:dim] = codes
    second = moments.second[:, at[:, None], at]
    return np.einsum("ta,tab,tb->ab", weights, second, weights, optimize=True)


def _features(drift: ALRNN) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the latent row of each parameter, and which of the features of `_gram` it multiplies."""
    dim, free = drift.latent_dim, drift.latent_dim - drift.gated
    rows, columns, _ = entries(drift, np.zeros((0, drift.gated), dtype=np.bool_))
    columns[free:dim] += dim + 1 - free
    return rows, columns
