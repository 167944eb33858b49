"""What all models of an ensemble get wrong in common, taken off their figures.

Each model f_k of an ensemble has a refit g_k, trained in the same way on a series that the model made
(`palrnn.ensembles.reflection`). By how much refits miss their models is how much models miss the system. With
b the median of g_k - f_k and e its error,

    draw k  =  m + sqrt(1 + e^2 / s^2) (f_k - m) - b,        m, s: mean and deviation of the f_k,

which are the models' own figures, shifted, and spread as far as b is uncertain: the bootstrap's estimate of a
bias (Efron and Tibshirani, 1993, ch. 10). The median, since now and then a refit ends unlike its model.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.geometry.posterior import ModelDraws

# deviation of normal numbers over their median absolute one; error of their median over that of their mean
_PER_MAD, _PER_MEAN = 1.4826, 1.2533
#: The fewest pairs that tell a bias.
LEAST = 2


def has_refits(posterior: ModelDraws) -> bool:
    """Whether models drawn from ``posterior`` have refits, by ``refit_of`` (an `Ensemble` may)."""
    return bool(getattr(posterior, "refits", ()))


def reflected(first: Floats, again: Floats) -> Floats:
    """Return draws ``(n, q)`` of the system's figures, from those of models and of their refits, ``(n, q)``.

    NaN where a model or a refit has no such figure; a figure that fewer than two pairs have is NaN.
    """
    return np.stack([_column(a, b) for a, b in zip(first.T, again.T, strict=True)], axis=1)


def _column(first: Floats, again: Floats) -> Floats:
    missed, known = (again - first)[np.isfinite(again - first)], first[np.isfinite(first)]
    if len(missed) < LEAST:
        return np.full(len(first), np.nan)
    bias = float(np.median(missed))
    error = _PER_MEAN * _PER_MAD * float(np.median(np.abs(missed - bias))) / math.sqrt(len(missed))
    mean, spread = float(known.mean()), float(known.std(ddof=1))
    wider = math.hypot(1.0, error / spread) if spread > 0.0 else 1.0
    return mean + wider * (first - mean) - bias
