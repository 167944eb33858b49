"""Coordinates in which hidden units move by themselves.

Hidden units are neither observed nor gated. Nothing looks at one of them alone, so that any coordinates will
do for them. Let z_h and z_o be the hidden and the observed ones of the ungated units, which move by z <- F z
when all gates are closed. With z_h = U y + S z_o,

    y <- U^(-1) T U y,   T = F_hh - S F_oh,   if  F_hh S + F_ho = S (F_oo + F_oh S).

The columns of U are the eigenvectors of T, so that each coordinate of y moves by itself, or as one of a pair
where eigenvalues are complex. Such an S is K_h K_o^(-1), where K holds eigenvectors of F, as many as there
are observed units: they span an invariant subspace. Where no good K is found, S is 0, and observed units move
hidden ones, too; where U is no good basis either, hidden units stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

# worse conditioned bases are not used: they could cost six of sixteen digits; trained networks have about 80
_WORST = 1e3
# what hidden coordinates may be off by, per unit and relative to F, is rounding; more is not a solution for S
_ROUNDING = 1e-12


class HiddenBasis(NamedTuple):
    """z = ``change`` (y, z_o), and y_i <- own_i y_i + mate_i y_{partner_i} + what units from ``reach`` on
    add.

    Units count hidden ones first. ``reach`` is the number of ungated units, or of hidden ones where observed
    units move them, or 0 where they stay as they are: then ``change`` is the identity, own and mate are zero.
    """

    change: Floats
    own: Floats
    mate: Floats
    partner: NDArray[np.int64]
    reach: int


class _Eigenvectors(NamedTuple):
    """A real basis ``V``, in which ``F V = V D``, D with own on the diagonal and mate at (i, partner_i)."""

    V: Floats
    own: Floats
    mate: Floats
    partner: NDArray[np.int64]


def hidden_basis(F: Floats, hidden: int) -> HiddenBasis:
    """Return coordinates for the first ``hidden`` of the ungated units, which move by ``F``."""
    free = len(F)
    unchanged = HiddenBasis(np.eye(free), np.zeros(hidden), np.zeros(hidden), np.arange(hidden), 0)
    if not hidden or not np.isfinite(F).all():
        return unchanged
    for shift, reach in ((_shift, free), (_no_shift, hidden)):
        try:
            S = shift(F, hidden)
            if S is None:
                continue
            found = _eigenvectors(F[:hidden, :hidden] - S @ F[hidden:, :hidden])
            change = np.eye(free)
            change[:hidden, :hidden], change[:hidden, hidden:] = found.V, S
            basis = HiddenBasis(change, found.own, found.mate, found.partner, reach)
            if np.linalg.cond(change) < _WORST and _left_over(basis, F) <= _ROUNDING * free * np.abs(F).max():
                return basis
        except np.linalg.LinAlgError:
            continue
    return unchanged


def _left_over(basis: HiddenBasis, F: Floats) -> float:
    """Return the largest entry by which hidden coordinates move otherwise than ``basis`` says."""
    moved = np.linalg.solve(basis.change, F @ basis.change)[: len(basis.own), : basis.reach]
    k = np.arange(len(basis.own))
    moved[k, k] -= basis.own
    moved[k, basis.partner] -= basis.mate
    return float(np.abs(moved).max())


def _eigenvectors(F: Floats) -> _Eigenvectors:
    values, vectors = np.linalg.eig(F)
    # LAPACK puts conjugate pairs side by side, the positive imaginary part first
    first = np.flatnonzero(values.imag > 0)
    V, mate, partner = vectors.real.copy(), values.imag.copy(), np.arange(len(F))
    V[:, first + 1] = vectors[:, first].imag
    partner[first], partner[first + 1] = first + 1, first
    return _Eigenvectors(V, values.real.copy(), mate, partner)


def _no_shift(F: Floats, hidden: int) -> Floats:
    return np.zeros((hidden, len(F) - hidden))


def _shift(F: Floats, hidden: int) -> Floats | None:
    """Return S = K_h K_o^(-1), or None where eigenvectors, with pairs unbroken, cannot be counted out."""
    V, _, _, partner = _eigenvectors(F)
    seen = len(F) - hidden
    groups = [sorted({k, int(partner[k])}) for k in range(len(F)) if k <= partner[k]]
    # those that are seen best, and seen differently from those before them
    left = V[hidden:].copy()
    chosen: list[int] = []
    while len(chosen) < seen:
        fitting = [group for group in groups if _can_be_filled(seen - len(chosen), group, groups)]
        if not fitting:
            return None
        sizes = [np.linalg.svd(left[:, group], compute_uv=False)[-1] for group in fitting]
        best = fitting[int(np.argmax(sizes))]
        groups.remove(best)
        chosen += best
        Q = np.linalg.qr(left[:, best])[0]
        left -= Q @ (Q.T @ left)
    K = V[:, chosen]
    return np.asarray(np.linalg.solve(K[hidden:].T, K[:hidden].T).T)


def _can_be_filled(places: int, group: list[int], groups: list[list[int]]) -> bool:
    """Whether the ``places`` can be filled by ``group`` and some of the others, ones and pairs."""
    ones = sum(len(other) == 1 for other in groups) - (len(group) == 1)
    pairs = sum(len(other) == 2 for other in groups) - (len(group) == 2)
    rest = places - len(group)
    return rest >= 0 and ones >= max(rest % 2, rest - 2 * pairs)
