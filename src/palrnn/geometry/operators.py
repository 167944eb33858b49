"""Information matrices that need not be built: products with vectors, and leading pairs from these alone."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_floats, as_int
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator


class SymmetricOperator(ABC):
    """A symmetric ``(p, p)`` matrix that is known by its products with vectors."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """p, the number of drift parameters."""

    @abstractmethod
    def product(self, v: Floats) -> Floats:
        """Return the product with ``v (p,)``."""

    def __matmul__(self, v: ArrayLike) -> Floats:
        """Multiply by ``v (p,)`` or ``(p, k)`` without building the matrix."""
        vectors = self._checked(v)
        pin_blas()
        columns = [self.product(np.ascontiguousarray(column)) for column in np.atleast_2d(vectors.T)]
        return columns[0] if vectors.ndim == 1 else np.stack(columns, axis=1)

    def _checked(self, v: ArrayLike) -> Floats:
        vectors, size = as_floats(v, "v"), self.parameters
        if vectors.ndim not in (1, 2) or vectors.shape[0] != size:
            raise ValueError(f"v must be ({size},) or ({size}, k), got {vectors.shape}")
        return vectors

    def leading(self, k: int = 50, *, seed: int = 0) -> tuple[Floats, Floats]:
        """Return the ``k`` largest eigenvalues, largest first, and their vectors ``(p, k)``, by Lanczos."""
        from scipy.sparse.linalg import LinearOperator, eigsh

        pin_blas()
        size = self.parameters
        k = as_int(k, "k", least=1, most=size - 1)
        operator = LinearOperator((size, size), matvec=lambda v: self.product(v.ravel()), dtype=np.float64)
        values, vectors = eigsh(operator, k=k, which="LA", v0=generator(seed).standard_normal(size))
        return values[::-1].copy(), vectors[:, ::-1].copy()


class InformationParts(SymmetricOperator):
    """Observed information as what is left of the complete one (eq. louis): its parts by their ``traces``."""

    @property
    @abstractmethod
    def traces(self) -> dict[str, float]:
        """The traces of all parts by name, and ``mir``, without building a matrix."""

    @property
    @abstractmethod
    def _dimensions(self) -> tuple[float, int]:
        """``missing_dimensions`` and ``informed_dimensions``."""

    @property
    def trace_complete(self) -> float:
        """tr E[I_comp | x]."""
        return self.traces["complete"]

    @property
    def trace_missing(self) -> float:
        """tr Cov(s | x)."""
        return self.traces["missing"]

    @property
    def trace_observed(self) -> float:
        """tr of ``observed``."""
        return self.traces["observed"]

    @property
    def trace_missing_state(self) -> float | None:
        """tr of ``missing_state``; None where the samples cannot tell."""
        return self.traces.get("missing_state")

    @property
    def trace_missing_switching(self) -> float | None:
        """tr of ``missing_switching``; None where the samples cannot tell."""
        return self.traces.get("missing_switching")

    @property
    def mir(self) -> float:
        """The missing-information ratio 1 - tr(observed) / tr(complete)."""
        return self.traces["mir"]

    @property
    def missing_dimensions(self) -> float:
        """tr(complete^+ missing): missing information, counted in directions that have lost all of theirs.

        Unbiased however few the samples. More than ``informed_dimensions`` means that the log evidence is not
        concave at these parameters (under the paper's target it says so of the recipe only); more than S K -
        1, the rank of ``missing`` from samples of states, that their estimate of ``observed`` has negative
        directions.
        """
        return self._dimensions[0]

    @property
    def informed_dimensions(self) -> int:
        """The rank of ``complete``: p, less the directions on which the complete data do not depend."""
        return self._dimensions[1]
