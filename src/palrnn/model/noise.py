"""Gaussian noise and linear observation: what a PAL-RNN adds to its drift.

    x = B z + d + noise         B = [I 0] and d = 0 unless told otherwise

`Noise` is a covariance, held as it was given: one deviation for all coordinates, one for each, or a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_floats, as_shape, frozen

_KINDS = ("isotropic", "diagonal", "full")


@dataclass(frozen=True, eq=False)
class Noise:
    """Zero-mean Gaussian noise: `Noise.isotropic`, `Noise.diagonal` or `Noise.full`.

    ``values`` is the deviation ``()``, the deviations ``(dim,)`` or the covariance ``(dim, dim)``. Two noises
    are equal if they are of one kind and hold the same numbers.
    """

    kind: str
    values: Floats

    def __post_init__(self) -> None:
        values = as_floats(self.values, "values")
        if self.kind not in _KINDS or values.ndim != _KINDS.index(self.kind):
            raise ValueError(f"kind must fit the shape of values, got {self.kind!r} and {values.shape}")
        if self.kind == "full":
            _check_covariance(values, "values")
        else:
            for entry in values.ravel():
                as_float(float(entry), "values", above=0.0)
        object.__setattr__(self, "values", frozen(values))

    @classmethod
    def isotropic(cls, std: float) -> Noise:
        """Return independent noise of one deviation in every coordinate."""
        return cls("isotropic", np.asarray(as_float(std, "std", above=0.0)))

    @classmethod
    def diagonal(cls, stds: ArrayLike) -> Noise:
        """Return independent noise with a deviation for each coordinate, ``(dim,)``."""
        each = as_shape(stds, "stds", (None,))
        return cls("diagonal", np.array([as_float(std, "stds", above=0.0) for std in each]))

    @classmethod
    def full(cls, covariance: ArrayLike) -> Noise:
        """Return noise of any covariance ``(dim, dim)``, symmetric and positive definite."""
        matrix = as_shape(covariance, "covariance", (None, None))
        _check_covariance(matrix, "covariance")
        return cls("full", matrix)

    @property
    def dim(self) -> int | None:
        """The number of coordinates; None for isotropic noise, which fits any."""
        return self.values.shape[0] if self.values.ndim else None

    @property
    def is_diagonal(self) -> bool:
        """Whether the coordinates are independent by construction."""
        return self.kind != "full"

    @property
    def std(self) -> float | Floats:
        """The deviation of every coordinate: a number if isotropic, else ``(dim,)``."""
        if self.kind == "isotropic":
            return float(self.values)
        return self.values if self.kind == "diagonal" else frozen(np.sqrt(np.diagonal(self.values)))

    @property
    def typical_std(self) -> float:
        """One number for a table: the root of the mean variance."""
        return (
            float(self.values) if self.kind == "isotropic" else float(np.sqrt(np.mean(np.square(self.std))))
        )

    def variances(self, dim: int) -> Floats:
        """Return the diagonal of the covariance in ``dim`` coordinates, ``(dim,)``."""
        variances = np.diagonal(self.values) if self.kind == "full" else np.square(self.values)
        return np.broadcast_to(variances, (self._fitting(dim),)).copy()

    def covariance(self, dim: int) -> Floats:
        """Return the covariance in ``dim`` coordinates, ``(dim, dim)``."""
        self._fitting(dim)
        return self.values.copy() if self.kind == "full" else np.diag(self.variances(dim))

    def root(self, dim: int) -> Floats:
        """Return the Cholesky factor L of the covariance L L^T, ``(dim, dim)``."""
        if self.kind == "full":
            return np.asarray(np.linalg.cholesky(self.covariance(dim)), dtype=np.float64)
        return np.diag(np.sqrt(self.variances(dim)))

    def scaled(self, normals: Floats) -> Floats:
        """Return this noise made of independent standard normal numbers ``(..., dim)``."""
        dim = normals.shape[-1]
        if self.kind == "full":
            return np.asarray(normals @ self.root(dim).T)
        return np.asarray(np.sqrt(self.variances(dim)) * normals)

    def resized(self, dim: int, kept: int) -> Noise:
        """Return noise in ``dim`` coordinates: of the first ``kept`` as it is, of others as others have it.

        These are independent, with the root of the mean variance of those after the first, if there are any.
        """
        if self.dim in (None, dim):
            return self
        old = self.variances(self.values.shape[0])
        others = np.full(dim - kept, np.mean(old[kept:] if len(old) > kept else old))
        if self.kind == "diagonal":
            return Noise.diagonal(np.sqrt(np.concatenate([old[:kept], others])))
        covariance = np.diag(np.concatenate([old[:kept], others]))
        covariance[:kept, :kept] = self.values[:kept, :kept]
        return Noise.full(covariance)

    def _fitting(self, dim: int) -> int:
        if self.dim not in (None, dim):
            raise ValueError(f"the noise has {self.dim} coordinates, asked for {dim}")
        return dim

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noise):
            return NotImplemented
        return self.kind == other.kind and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.kind, self.values.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that copies are read-only too
        return Noise, (self.kind, np.array(self.values))

    def __str__(self) -> str:
        return f"{float(self.values):.4g}" if self.dim is None else str(np.round(self.values, 4).tolist())

    def __repr__(self) -> str:
        return f"Noise.{self.kind}({self})"


def as_noise(value: Noise | float | ArrayLike, name: str, dim: int) -> Noise:
    """Return ``value`` as noise in ``dim`` coordinates.

    A number is one deviation, ``(dim,)`` are deviations, ``(dim, dim)`` is a covariance.
    """
    if isinstance(value, Noise):
        if value.dim not in (None, dim):
            raise ValueError(f"{name} must have {dim} coordinates, got {value!r}")
        return value
    if np.ndim(value) == 0:
        number = value.item() if isinstance(value, np.ndarray) else value
        return Noise("isotropic", np.asarray(as_float(number, name, above=0.0)))
    array = as_floats(value, name)
    if array.shape == (dim,):
        for entry in array:
            as_float(float(entry), name, above=0.0)
        return Noise("diagonal", array)
    if array.shape != (dim, dim):
        wanted = f"one number or have shape ({dim},) or ({dim}, {dim})"
        raise ValueError(f"{name} must be {wanted}, got {array.shape}")
    _check_covariance(array, name)
    return Noise("full", array)


@dataclass(frozen=True, eq=False, init=False)
class ObservationMap:
    """The linear map from state to observation, x = B z + d: ``B (N, M)``, ``d (N,)``, zero unless given."""

    B: Floats
    d: Floats

    def __init__(self, B: ArrayLike, d: ArrayLike | None = None) -> None:
        matrix = as_shape(B, "B", (None, None))
        if not matrix.size:
            raise ValueError(f"B must be (N, M) with N, M >= 1, got {matrix.shape}")
        offset = np.zeros(len(matrix)) if d is None else as_shape(d, "d", (len(matrix),))
        object.__setattr__(self, "B", frozen(matrix))
        object.__setattr__(self, "d", frozen(offset))

    @classmethod
    def first_units(cls, observed_dim: int, latent_dim: int) -> ObservationMap:
        """Return the map that reads the first N of M units, [I 0]."""
        return cls(np.eye(observed_dim, latent_dim))

    @property
    def is_first_units(self) -> bool:
        """Whether the map is [I 0] without offset."""
        return bool(np.array_equal(self.B, np.eye(*self.B.shape)) and not np.any(self.d))

    def __call__(self, z: Floats) -> Floats:
        """Return B z + d for each state, ``(..., M) -> (..., N)``."""
        if self.is_first_units:
            return np.asarray(z[..., : len(self.B)])
        return np.asarray(z @ self.B.T + self.d)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObservationMap):
            return NotImplemented
        return np.array_equal(self.B, other.B) and np.array_equal(self.d, other.d)

    def __hash__(self) -> int:
        return hash((self.B.tobytes(), self.d.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return ObservationMap, (np.array(self.B), np.array(self.d))

    def __repr__(self) -> str:
        kind = "the first units" if self.is_first_units else "x = B z + d"
        return f"ObservationMap({kind}, {self.B.shape[0]} of {self.B.shape[1]})"


def _check_covariance(matrix: Floats, name: str) -> None:
    if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise ValueError(f"{name} must be a symmetric matrix, got shape {matrix.shape}")
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(matrix)[0])
        raise ValueError(f"{name} must be positive definite, its least eigenvalue is {least:.3g}") from None
