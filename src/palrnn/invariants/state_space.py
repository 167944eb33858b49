"""D_stsp: do two trajectories visit the same places equally often?

The measure is KL(reference || generated) between histograms over a box around the reference, in raw
coordinates (paper, "State-space divergence"). In more than six dimensions a histogram is mostly empty, and
the divergence of two Gaussian mixtures, one component per point, takes its place (Hershey and Olsen, 2007;
`mixture_divergence`).

D_stsp is not a distance to zero: two stretches of the same true system differ too. Show it with
`dstsp_floor`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_int, as_series, one_of
from palrnn.invariants.mixture import mixture_divergence

PROTOCOLS = ("paper", "alrnn-python", "gtf")
_MOST_HISTOGRAM_DIMS = 6


@dataclass(frozen=True)
class StateSpaceDivergence:
    """D_stsp and what it was computed from.

    ``value`` in nats; ``outside`` the fraction of generated points outside the reference's box (they have no
    bin, so with ``outside`` near 1 the value says only "elsewhere"); ``kept_generated`` and
    ``kept_reference`` the numbers of points that entered; ``stderr`` the Monte Carlo standard error (0 for
    histograms); ``method`` "histogram" or "mixture".
    """

    value: float
    outside: float
    kept_generated: int
    kept_reference: int
    stderr: float = 0.0
    method: str = "histogram"
    protocol: str = "paper"

    def __repr__(self) -> str:
        error = f" ± {self.stderr:.2g}" if self.method == "mixture" else ""
        how = self.protocol if self.method == "histogram" else self.method
        return f"StateSpaceDivergence({self.value:.4g}{error} nats, {self.outside:.1%} outside, {how})"


def dstsp(
    generated: ArrayLike,
    reference: ArrayLike,
    *,
    bins: int = 30,
    smoothing: float = 1e-5,
    protocol: str = "paper",
    method: str | None = None,
    mixture_std: float = 1.0,
    samples: int = 1000,
    seed: int = 0,
) -> StateSpaceDivergence:
    """Return D_stsp = KL(reference || generated) of ``generated (T', N)`` against ``reference (T, N)``.

    Both series are in raw coordinates. ``smoothing`` is added to every bin's count. Protocols:

    - ``paper``: the box is the reference's minimum and maximum; generated points outside it have no bin and
      do not enter the normalisation, but are reported in ``outside``;
    - ``alrnn-python``: the public AL-RNN code, which also loses, from both series, the points in the first
      bin of any dimension and the reference's maxima;
    - ``gtf``: the public GTF code, whose box is wider by 0.1 standard deviations on each side.

    ``method`` is "histogram" for N <= 6 and "mixture" beyond, unless given. The mixture has Gaussians of
    ``mixture_std`` reference deviations at every point and is integrated with ``samples`` draws (with
    ``seed``); it knows no protocols.
    """
    truth = as_series(reference, "reference")
    model = as_series(generated, "generated", min_steps=1, dim=truth.shape[1])
    bins = as_int(bins, "bins", least=1)
    smoothing = as_float(smoothing, "smoothing", above=0.0)
    protocol = one_of(protocol, "protocol", PROTOCOLS)
    method = "histogram" if method is None and truth.shape[1] <= _MOST_HISTOGRAM_DIMS else method or "mixture"
    low, high = _box(truth, protocol)
    outside = float(((model < low) | (model > high)).any(axis=1).mean())
    if one_of(method, "method", ("histogram", "mixture")) == "mixture":
        value, stderr = mixture_divergence(model, truth, std=mixture_std, samples=samples, seed=seed)
        return StateSpaceDivergence(value, outside, len(model), len(truth), stderr, method, protocol)
    if bins ** truth.shape[1] >= 2**62:
        raise ValueError(
            f"bins={bins} in {truth.shape[1]} dimensions is too many to count; use method='mixture'"
        )
    q, p = (_cells(series, low, high, bins, protocol) for series in (model, truth))
    value = _smoothed_divergence(p, q, smoothing, bins ** truth.shape[1])
    return StateSpaceDivergence(value, outside, len(q), len(p), protocol=protocol)


def _box(truth: Floats, protocol: str) -> tuple[Floats, Floats]:
    low, high = truth.min(axis=0), truth.max(axis=0)
    flat = np.flatnonzero(low == high)
    if flat.size:
        raise ValueError(f"reference must vary in every column, column {flat[0]} is constant")
    margin = 0.1 * truth.std(axis=0, ddof=1) if protocol == "gtf" else 0.0
    return low - margin, high + margin


def _cells(series: Floats, low: Floats, high: Floats, bins: int, protocol: str) -> NDArray[np.int64]:
    """Return the flat number of the bin of each point of ``series (T, N)`` that has one."""
    # far points are clipped first, so that the cast to integers cannot overflow
    place = np.floor(np.clip((series - low) / (high - low), -1.0, 2.0) * bins).astype(np.int64)
    if protocol == "alrnn-python":
        inside = ((place > 0) & (place < bins)).all(axis=1)
    else:
        inside = ((series >= low) & (series <= high)).all(axis=1)
        place = np.clip(place, 0, bins - 1)
    weights = bins ** np.arange(series.shape[1], dtype=np.int64)
    cells: NDArray[np.int64] = place[inside] @ weights
    return cells


def _smoothed_divergence(p: NDArray[np.int64], q: NDArray[np.int64], smoothing: float, total: int) -> float:
    """KL of Laplace-smoothed histograms over ``total`` bins, from the bin numbers of their points.

    With counts n_b and m_b, Z_p = |p| + a K and Z_q = |q| + a K,

        KL = sum_b (n_b + a) / Z_p * log((n_b + a) / (m_b + a)) + log(Z_q / Z_p),

    and bins that both series leave empty add nothing to the sum, so that only occupied ones are ever stored.
    """
    _, where = np.unique(np.concatenate([p, q]), return_inverse=True)
    occupied = int(where.max(initial=-1)) + 1
    n = np.bincount(where[: len(p)], minlength=occupied) + smoothing
    m = np.bincount(where[len(p) :], minlength=occupied) + smoothing
    z_p, z_q = len(p) + smoothing * total, len(q) + smoothing * total
    # clipped at zero: rounding can leave -1e-17 for series that are nearly the same
    return max(0.0, float(n @ np.log(n / m)) / z_p + math.log(z_q / z_p))
