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
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.data import delay_embed, suggest_tau
from palrnn.engine.checks import Floats, as_float, as_int, as_series, one_of
from palrnn.engine.gaps import whole_rows
from palrnn.engine.seeds import generator
from palrnn.invariants.kernels import state_space as kernels

PROTOCOLS = ("paper", "alrnn-python", "gtf")
_MOST_HISTOGRAM_DIMS = 6
_LAGS = 3
_MOST_DENSE_BINS = 2**17
_NO_DELAY = (
    "D_stsp of a single column sees no dynamics: a shuffled series scores 0. Give delay, in steps "
    "(palrnn.suggest_tau of the reference, say), to compare delay spaces"
)


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


def delay_for(reference: Floats) -> int | None:
    """Return the delay in which ``reference (T, N)`` is compared: None where it has several coordinates.

    Of a single one, the time over which it remembers itself, or less where it is short.
    """
    if reference.shape[1] > 1:
        return None
    return max(1, min(suggest_tau(reference), len(reference) // (2 * _LAGS)))


def dstsp(
    generated: ArrayLike,
    reference: ArrayLike,
    *,
    bins: int = 30,
    smoothing: float = 1e-5,
    protocol: str = "paper",
    method: str | None = None,
    delay: int | None = None,
    mixture_std: float = 1.0,
    samples: int = 1000,
    seed: int = 0,
) -> StateSpaceDivergence:
    """Return D_stsp = KL(reference || generated) of ``generated (T', N)`` against ``reference (T, N)``.

    Both series are in raw coordinates; rows with gaps (NaN) are left out. ``smoothing`` is added to every
    bin's count, which is nothing in three dimensions (0.27 points over 30^3 bins) and most of the mass in six
    (7,290 points over 30^6). Protocols:

    - ``paper``: the box is the reference's minimum and maximum; generated points outside it have no bin and
      do not enter the normalisation, but are reported in ``outside``;
    - ``alrnn-python``: the public AL-RNN code, which also loses, from both series, the points in the first
      bin of any dimension and the reference's maxima;
    - ``gtf``: the public GTF code, whose box is wider by 0.1 standard deviations on each side.

    With a ``delay``, both are compared in their delay space: each coordinate now, ``delay`` and twice that
    many steps ago. A histogram of one coordinate sees where a series goes, and nothing of how: a single
    column without a ``delay`` gets a warning (UserWarning). `suggest_tau` of the reference is one to try.

    ``method`` is "histogram" for N <= 6 and "mixture" beyond, unless given. The mixture has Gaussians of
    ``mixture_std`` reference deviations at every point and is integrated with ``samples`` draws (with
    ``seed``); it knows no protocols.
    """
    truth = as_series(reference, "reference", allow_nan=True)
    model = as_series(generated, "generated", min_steps=1, dim=truth.shape[1], allow_nan=True)
    if delay is not None:
        truth, model = (delayed(series, delay) for series in (truth, model))
    elif truth.shape[1] == 1:
        warnings.warn(_NO_DELAY, stacklevel=2)
    truth, model = _whole(truth, "reference"), _whole(model, "generated")
    bins = as_int(bins, "bins", least=1)
    smoothing = as_float(smoothing, "smoothing", above=0.0)
    protocol, seed = one_of(protocol, "protocol", PROTOCOLS), as_int(seed, "seed", most=None)
    method = "histogram" if method is None and truth.shape[1] <= _MOST_HISTOGRAM_DIMS else method or "mixture"
    if method == "histogram" and bins ** truth.shape[1] >= 2**62:
        raise ValueError(
            f"bins={bins} in {truth.shape[1]} dimensions is too many to count; use method='mixture'"
        )
    low, high = _box(truth, protocol)
    q, within = _cells(model, low, high, bins, protocol)
    outside = 1.0 - within / len(model)
    if one_of(method, "method", ("histogram", "mixture")) == "mixture":
        value, stderr = mixture_divergence(model, truth, std=mixture_std, samples=samples, seed=seed)
        return StateSpaceDivergence(value, outside, len(model), len(truth), stderr, method, protocol)
    p, _ = _cells(truth, low, high, bins, protocol)
    value = _smoothed_divergence(p, q, smoothing, bins ** truth.shape[1])
    return StateSpaceDivergence(value, outside, len(q), len(p), protocol=protocol)


def _whole(series: Floats, name: str) -> Floats:
    if not np.isnan(series).any():  # the usual case, and much quicker than row by row
        return series
    whole = whole_rows(series)
    if not whole.any():
        raise ValueError(f"{name} must have a row without gaps, every row has a gap (NaN)")
    return series if whole.all() else series[whole]


def delayed(series: Floats, delay: int) -> Floats:
    """Return ``series (T, N)`` in the delay space of `dstsp`: now, ``delay`` and twice as many steps ago."""
    step = as_int(delay, "delay", least=1)
    if len(series) < _LAGS * step + 1:
        raise ValueError(f"delay must be at most a third of both series, got {delay} for {len(series)} steps")
    return delay_embed(series, _LAGS, step)


def _box(truth: Floats, protocol: str) -> tuple[Floats, Floats]:
    columns = np.ascontiguousarray(truth.T)  # NumPy is ten times as fast along contiguous numbers
    low, high = columns.min(axis=1), columns.max(axis=1)
    flat = np.flatnonzero(low == high)
    if flat.size:
        raise ValueError(f"reference must vary in every column, column {flat[0]} is constant")
    margin = 0.1 * truth.std(axis=0, ddof=1) if protocol == "gtf" else 0.0
    return low - margin, high + margin


def _cells(
    series: Floats, low: Floats, high: Floats, bins: int, protocol: str
) -> tuple[NDArray[np.int64], int]:
    """Return the bin number of each point of ``series (T, N)`` that has one, and how many lie in the box."""
    numbers = np.empty(len(series), dtype=np.int64)
    first, closed = (1, False) if protocol == "alrnn-python" else (0, True)
    kept, within = kernels.cells(series, low, high, bins, first, closed, numbers)
    return numbers[:kept], within


def _smoothed_divergence(p: NDArray[np.int64], q: NDArray[np.int64], smoothing: float, total: int) -> float:
    """KL of Laplace-smoothed histograms over ``total`` bins, from the bin numbers of their points.

    With counts n_b and m_b, Z_p = |p| + a K and Z_q = |q| + a K,

        KL = sum_b (n_b + a) / Z_p * log((n_b + a) / (m_b + a)) + log(Z_q / Z_p),

    and bins that both series leave empty add nothing to the sum: of many bins only the occupied are stored.
    """
    bins = total
    if total > _MOST_DENSE_BINS:
        occupied, where = np.unique(np.concatenate([p, q]), return_inverse=True)
        p, q, bins = where[: len(p)], where[len(p) :], len(occupied)
    counts_p, counts_q = np.bincount(p, minlength=bins), np.bincount(q, minlength=bins)
    seen = np.flatnonzero(counts_p + counts_q)
    n, m = counts_p[seen] + smoothing, counts_q[seen] + smoothing
    z_p, z_q = len(p) + smoothing * total, len(q) + smoothing * total
    # clipped at zero: rounding can leave -1e-17 for series that are nearly the same
    return max(0.0, float(n @ np.log(n / m)) / z_p + math.log(z_q / z_p))


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
