"""All fixed points of a surrogate, exactly: one linear system per region.

In the region of code c the map is affine, z' = J(c) z + b(c), so its only candidate for a fixed point is

    z = (I - J(c))^{-1} b(c).

It is *admissible*, a fixed point of the map, if it lies in its own region: 1{G z + g > 0} = c. Otherwise
it is *virtual*: trajectories are drawn to it, or pushed from it, only as long as they stay in the region.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_int
from palrnn.engine.kernel import pin_blas
from palrnn.model import PALRNN, Surrogate, drift_of
from palrnn.model.engine import codes as codes_of

_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class FixedPoints:
    """The fixed points found in ``regions`` regions.

    ``points (K, M)``, ``codes (K, P)``, ``eigenvalues (K, M)`` of the Jacobian there, by modulus, descending;
    ``admissible (K,)``, all True unless virtual ones were asked for; ``singular``, the number of regions
    whose linear system has no unique solution (none, or a continuum).
    """

    points: Floats
    codes: NDArray[np.bool_]
    eigenvalues: NDArray[np.complex128]
    admissible: NDArray[np.bool_]
    regions: int
    singular: int

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Whether each attracts: all eigenvalues inside the unit circle."""
        return np.asarray(np.abs(self.eigenvalues).max(axis=1, initial=0.0) < 1)

    @property
    def unstable_directions(self) -> NDArray[np.int64]:
        """The number of eigenvalues outside the unit circle, for each fixed point."""
        return np.asarray((np.abs(self.eigenvalues) > 1).sum(axis=1))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        real = int(self.admissible.sum())
        virtual = f", {len(self) - real} virtual" if real < len(self) else ""
        singular = f", {self.singular} singular" if self.singular else ""
        stable = int((self.stable & self.admissible).sum())
        found = f"{real} admissible, {stable} of them stable{virtual}"
        return f"FixedPoints({found}; {self.regions} regions{singular})"


def fixed_points(
    model: Surrogate | PALRNN,
    *,
    virtual: bool = False,
    most_gated: int = 16,
    within: ArrayLike | None = None,
) -> FixedPoints:
    """Return the fixed points of ``model`` (of a PAL-RNN, of its hard-gated drift) in all 2^P regions.

    Only admissible ones, unless ``virtual``. The work doubles with every gate; more than ``most_gated``
    of them is an error, unless only the regions of some codes are asked for, ``within (K, P)``.
    """
    drift = drift_of(model)
    most = as_int(most_gated, "most_gated", most=24)
    asked = None if within is None else _asked(within, drift.gated)
    if drift.gated > most and asked is None:
        raise ValueError(
            f"model has {drift.gated} gates, that is 2^{drift.gated} regions; most_gated is {most}"
        )
    pin_blas()
    regions, singular, found = 2**drift.gated if asked is None else len(asked), 0, []
    for first in range(0, regions, _CHUNK):
        last = min(first + _CHUNK, regions)
        codes = _codes(np.arange(first, last), drift.gated) if asked is None else asked[first:last]
        matrices, b = drift.affine(codes)
        matrices = np.eye(drift.latent_dim) - matrices  # frees the Jacobians before the solver takes memory
        points, solved = _solve_each(matrices, b)
        singular += int((~solved).sum())
        keep = solved if virtual else solved & (codes_of(drift, points) == codes).all(axis=1)
        found.append((points[keep], codes[keep]))
    points, codes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    eigenvalues = sorted_eigenvalues(drift.affine(codes)[0])
    admissible = (codes_of(drift, points) == codes).all(axis=1)
    for array in (points, codes, eigenvalues, admissible):
        array.flags.writeable = False
    return FixedPoints(points, codes, eigenvalues, admissible, regions, singular)


def _asked(within: ArrayLike, gated: int) -> NDArray[np.bool_]:
    codes = np.asarray(within)
    if codes.ndim != 2 or codes.shape[1] != gated or not len(codes) or not np.isin(codes, (0, 1)).all():
        raise ValueError(f"within must be codes (K, {gated}) of zeros and ones, got shape {codes.shape}")
    return np.unique(codes.astype(np.bool_), axis=0)


def sorted_eigenvalues(J: Floats) -> NDArray[np.complex128]:
    """Return the eigenvalues of each of ``J (K, M, M)``, largest modulus first: ``(K, M)``."""
    values = np.linalg.eigvals(J).astype(np.complex128)
    return np.take_along_axis(values, np.argsort(-np.abs(values), axis=1, kind="stable"), axis=1)


def _solve_each(matrices: Floats, b: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Solve ``matrices (K, M, M)`` z = ``b (K, M)``; the second result: which have a precise solution."""
    try:
        points = np.linalg.solve(matrices, b[..., None])[..., 0]
        solved = np.ones(len(matrices), dtype=np.bool_)
    except np.linalg.LinAlgError:
        points, solved = np.zeros(b.shape), np.zeros(len(matrices), dtype=np.bool_)
        for i, matrix in enumerate(matrices):
            try:
                points[i], solved[i] = np.linalg.solve(matrix, b[i]), True
            except np.linalg.LinAlgError:
                continue
    # a matrix that is singular up to rounding gives a point so far out that it does not solve the system
    residual = np.abs((matrices @ points[..., None])[..., 0] - b).max(axis=1)
    size = 1.0 + np.abs(matrices).max(axis=(1, 2)) * np.abs(points).max(axis=1)
    solved &= np.isfinite(size) & (np.abs(points).max(axis=1) < 1e12) & (residual <= 1e-9 * size)
    return np.where(solved[:, None], points, 0.0), solved


def _codes(numbers: NDArray[np.int64], gated: int) -> NDArray[np.bool_]:
    """Return the code of each number, the first gated unit the highest bit: ``(K, P)``."""
    return np.asarray((numbers[:, None] >> np.arange(gated - 1, -1, -1)) & 1, dtype=np.bool_)
