"""The divergence of two point clouds as Gaussian mixtures, for series of many dimensions."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.checks import Floats, as_float, as_int
from palrnn.engine.seeds import generator
from palrnn.invariants.kernels import mixture as kernels


def mixture_divergence(
    generated: Floats, reference: Floats, *, std: float, samples: int, seed: int
) -> tuple[float, float]:
    """Return KL(reference || generated) and its standard error, both clouds as mixtures of equal Gaussians.

        p(x) = 1/T sum_t N(x; reference_t, S),   q(x) = 1/T' sum_t N(x; generated_t, S),   S = (std *
        deviation)^2

    with the deviation of the reference in each coordinate, integrated with ``samples`` draws from p. Memory
    does not grow with the product of the lengths.
    """
    std, samples = as_float(std, "mixture_std", above=0.0), as_int(samples, "samples", least=2)
    unit = std * reference.std(axis=0)
    truth, model = (
        np.ascontiguousarray((series - reference.mean(axis=0)) / unit) for series in (reference, generated)
    )
    rng = generator(seed)
    points = truth[rng.integers(0, len(truth), samples)] + rng.standard_normal((samples, truth.shape[1]))
    log_p, log_q = np.empty(samples), np.empty(samples)
    kernels.log_density(points, truth, log_p)
    kernels.log_density(points, model, log_q)
    ratio = log_p - log_q
    return float(ratio.mean()), float(ratio.std(ddof=1) / math.sqrt(samples))
