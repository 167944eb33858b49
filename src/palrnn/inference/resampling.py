"""Resampling by name: from weights to ancestors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import as_instance, as_int, as_shape, one_of
from palrnn.inference.kernels import resampling as kernels

SCHEMES = {
    "multinomial": kernels.MULTINOMIAL,
    "systematic": kernels.SYSTEMATIC,
    "stratified": kernels.STRATIFIED,
    "residual": kernels.RESIDUAL,
}


def resample(
    weights: ArrayLike, n: int, rng: np.random.Generator, *, scheme: str = "multinomial"
) -> NDArray[np.int32]:
    """Return ``n`` ancestors, index k appearing ``n * weights[k] / sum(weights)`` times in expectation.

    multinomial: independent draws, the paper's choice. systematic: one random number, least noise in
    practice. stratified: one per stratum. residual: whole copies first, the rest at random.
    """
    values = as_shape(weights, "weights", (None,))
    if (values < 0).any() or not values.sum() > 0:
        raise ValueError("weights must be non-negative with a positive sum")
    ancestors = np.empty(as_int(n, "n", least=1), dtype=np.int32)
    as_instance(rng, "rng", np.random.Generator)
    number = SCHEMES[one_of(scheme, "scheme", SCHEMES)]
    kernels.resample(number, values, rng.random(len(ancestors)), ancestors)
    return ancestors
