"""Two curvatures compared: by trace, by volume, direction by direction, and by their leading subspaces.

The observed information is an estimate and may be indefinite, and some directions carry no information at
all:

- A_ii and W_ii of an ungated unit act on the same input, so that e(A_ii) - e(W_ii) is a null direction of
both
  matrices, one for each of the M - P ungated units, which only the ridge fills. They are counted in
  ``null``; with ``project=True`` they are taken out first.
- A negative direction of the observed information has no logarithm. Negative directions are counted in
  ``negative``; ``log10_gamma`` and its quantiles hold the positive ones only, and ``logdet_gap`` is that of
  the absolute determinant.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_floats, as_int
from palrnn.engine.kernel import pin_blas
from palrnn.geometry.information import IndefiniteInformationWarning
from palrnn.model.families.alrnn_layout import identifiable_basis, null_units


def curvature_gap(itf: ArrayLike, observed: ArrayLike, steps: int) -> float:
    """Return g = log10(T tr(itf) / tr(observed)) (eq. gap), for ``itf`` per step and ``observed`` of T steps.

    Both may be given as matrices or as their traces. NaN, with a warning, where tr(observed) is not positive.
    """
    steps = as_int(steps, "steps", least=1)
    top, bottom = _trace(itf, "itf"), _trace(observed, "observed")
    if top <= 0:
        raise ValueError(f"itf must have a positive trace, got {top:g}")
    if bottom <= 0:
        message = f"the observed information has the trace {bottom:.3g}: there is no curvature gap"
        warnings.warn(message, IndefiniteInformationWarning, stacklevel=2)
        return math.nan
    return math.log10(steps * top / bottom)


@dataclass(frozen=True, eq=False)
class Mismatch:
    """How two curvature matrices differ, both symmetrised and with a ridge (paper, "Matrix-aware mismatch").

    - ``logdet_gap``: log10 of the determinants' moduli, itf minus observed, in decades
    - ``log10_gamma``: log10 of the positive generalised eigenvalues of itf u = gamma observed u, ascending
    - ``overlap``: mean squared cosine between the leading ``k``-dimensional eigenspaces, 0 to 1
    - ``overlaps (p,)``: the same for every k = 1 .. p
    - ``negative``: negative directions of ``observed``; as many negative gamma, left out of ``log10_gamma``
    - ``null``: exact null directions of both matrices (A_ii against W_ii of ungated units)
    - ``ridge``: mu, what was added to both diagonals
    - ``itf_eigenvalues``, ``observed_eigenvalues``: descending, with the ridge
    """

    logdet_gap: float
    log10_gamma: Floats = field(repr=False)
    overlap: float
    overlaps: Floats = field(repr=False)
    negative: int
    null: int
    k: int
    ridge: float
    itf_eigenvalues: Floats = field(repr=False)
    observed_eigenvalues: Floats = field(repr=False)

    def quantile(self, q: float) -> float:
        """Return the q-quantile of log10 gamma over the positive directions (eq. gen_eig); NaN without."""
        q = as_float(q, "q", least=0.0, most=1.0)
        return float(np.quantile(self.log10_gamma, q)) if self.log10_gamma.size else math.nan

    @property
    def q90(self) -> float:
        """The 0.9-quantile of log10 gamma; below 0, most directions are sharper under the likelihood."""
        return self.quantile(0.9)

    @property
    def figures(self) -> dict[str, float]:
        """The numbers that sum it up, by name."""
        return {
            "logdet_gap": self.logdet_gap,
            "q90": self.q90,
            "overlap": self.overlap,
            "negative": self.negative,
        }

    def __repr__(self) -> str:
        size = len(self.itf_eigenvalues)
        return (
            f"Mismatch(p={size}: logdet_gap={self.logdet_gap:.1f} decades, q90={self.q90:.3f}, "
            f"overlap={self.overlap:.3f} at k={self.k}; {self.negative} negative, {self.null} null)"
        )


def mismatch(
    itf: ArrayLike,
    observed_per_step: ArrayLike,
    *,
    ridge: float = 1e-6,
    k: int = 50,
    project: bool = False,
    input_dim: int = 0,
) -> Mismatch:
    """Compare the ITF Fisher with the observed information, both ``(p, p)`` and per step.

    Both are symmetrised and receive the ridge ``mu = ridge * (tr(observed) + tr(itf)) / (2 p)``, in which a
    negative tr(observed) counts as 0. ``k`` is the dimension of the leading subspaces (at most p). With
    ``project=True`` the comparison happens on the identifiable subspace, orthogonal to the null directions.
    ``input_dim`` is that of the model, from which it is known where its parameters stand.
    """
    A, B = _square(itf, "itf"), _square(observed_per_step, "observed_per_step")
    if A.shape != B.shape:
        raise ValueError(f"itf and observed_per_step must have the same shape, got {A.shape} and {B.shape}")
    inputs = as_int(input_dim, "input_dim", least=0)
    units = null_units(A, B, inputs=inputs)
    return Forced(A, units, project=project, inputs=inputs).against(B, ridge=ridge, k=k)


class Forced:
    """One side of a comparison, made ready once: the ITF Fisher ``(p, p)``, to be held against many others.

    ``units`` are those whose A_ii and W_ii no data tell apart; ``project`` takes their directions out;
    ``inputs`` is the number of external ones.
    """

    def __init__(self, itf: Floats, units: NDArray[np.int64], *, project: bool, inputs: int = 0) -> None:
        pin_blas()
        self.null = len(units)
        self._basis = identifiable_basis(len(itf), units, inputs) if project else None
        kept = self._projected(itf)
        self._trace, self._size = float(np.trace(kept)), len(kept)
        if not self._trace > 0:
            raise ValueError(f"itf must have a positive trace, got {self._trace:g}")
        values, vectors = np.linalg.eigh(kept)
        self._values, self._vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    def against(self, observed: Floats, *, ridge: float, k: int) -> Mismatch:
        """Return how the ITF Fisher differs from ``observed (p, p)`` per step; see `mismatch`."""
        ridge, k = as_float(ridge, "ridge", above=0.0), as_int(k, "k", least=1)
        pin_blas()
        B, size = self._projected(observed), self._size
        mu = ridge * (max(float(np.trace(B)), 0.0) + self._trace) / (2 * size)
        b, V = np.linalg.eigh(B)
        a, b, V = self._values + mu, b[::-1] + mu, V[:, ::-1]
        # itf is positive definite and observed need not be, so the problem is solved the other way round
        between = self._vectors.T @ V
        half = between * np.sqrt(np.abs(b)) / np.sqrt(a)[:, None]
        inverse_gamma = np.linalg.eigvalsh((half * np.sign(b)) @ half.T)
        overlaps = _leading_overlaps(between)
        k = min(k, size)
        return Mismatch(
            logdet_gap=float(np.log10(a).sum() - np.log10(np.abs(b)).sum()),
            log10_gamma=np.sort(-np.log10(inverse_gamma[inverse_gamma > 0])),
            overlap=float(overlaps[k - 1]),
            overlaps=overlaps,
            negative=int((b < 0).sum()),
            null=self.null,
            k=k,
            ridge=float(mu),
            itf_eigenvalues=a,
            observed_eigenvalues=b,
        )

    def _projected(self, matrix: Floats) -> Floats:
        if self._basis is None:
            return matrix
        return np.asarray(self._basis.T @ (self._basis.T @ matrix).T)


def subspace_overlap(one: ArrayLike, other: ArrayLike) -> float:
    """Return the mean squared cosine of the principal angles between two orthonormal bases ``(p, k)``.

    For leading eigenvectors of operators that are too large for `mismatch`.
    """
    U, V = as_floats(one, "one"), as_floats(other, "other")
    if U.ndim != 2 or U.shape != V.shape or not U.size:
        raise ValueError(f"one and other must both be (p, k), got {U.shape} and {V.shape}")
    if max(np.abs(U).max(initial=0.0), np.abs(V).max(initial=0.0)) > 1.0 + 1e-6:
        raise ValueError("one and other must be orthonormal, an entry is greater than 1")
    return float(((U.T @ V) ** 2).sum() / U.shape[1])


def _leading_overlaps(between: Floats) -> Floats:
    """Return ov_k = |U_k^T V_k|_F^2 / k for all k, from ``between`` = U^T V."""
    corner = (between**2).cumsum(axis=0).cumsum(axis=1).diagonal()
    return np.asarray(corner / np.arange(1, len(between) + 1))


def _trace(value: ArrayLike, name: str) -> float:
    array = as_floats(value, name)
    if array.ndim not in (0, 2) or not array.size or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(f"{name} must be a square matrix or its trace, got shape {array.shape}")
    return float(array) if array.ndim == 0 else float(np.trace(array))


def _square(value: ArrayLike, name: str) -> Floats:
    array = as_floats(value, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    return 0.5 * (array + array.T)
