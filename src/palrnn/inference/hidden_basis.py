"""Decoupled coordinates for hidden units, in which a prediction takes O(M^2 (N + P)) operations, not O(M^3).

Hidden units are neither observed nor gated: nothing refers to a single one of them, so that the filter may
use any basis for them. Let z_h and z_o be the hidden and the observed ones of the ungated units, which evolve
by z <- F z while all gates are closed. With z_h = U y + S z_o,

    y <- U^(-1) T U y,   T = F_hh - S F_oh,   if  F_hh S + F_ho = S (F_oo + F_oh S),   a Riccati equation.

The columns of U are the eigenvectors of T: each coordinate of y depends on itself only, or also on a partner
where eigenvalues are a complex pair. S is K_h K_o^(-1), where the columns of K are eigenvectors of F, as many
as there are observed units, which span an invariant subspace. Where no well-conditioned K is found, S is 0,
and the observed units drive the hidden ones; where U is ill-conditioned, too, hidden units keep their own
coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

# the largest condition number of a basis: it may cost six of sixteen digits; trained networks have about 80
_WORST_CONDITION = 1e3
# the largest residual of the decoupled equations, per unit and relative to F, that is rounding
_ROUNDING = 1e-12


class HiddenBasis(NamedTuple):
    """z = ``change`` (y, z_o), and y_i <- own_i y_i + mate_i y_{partner_i} + contributions of units from
    ``reach`` on.

    Units are numbered with hidden ones first. ``reach`` is the number of ungated units where y is decoupled
    from all of them, the number of hidden ones where observed units drive y, and 0 where hidden units keep
    their own coordinates: then ``change`` is the identity, own and mate are zero.
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
    """Return coordinates for the first ``hidden`` of the ungated units, which evolve by ``F``."""
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
            rounding = _ROUNDING * free * np.abs(F).max()
            if np.linalg.cond(change) < _WORST_CONDITION and _residual(basis, F) <= rounding:
                return basis
        except np.linalg.LinAlgError:
            continue
    return unchanged


def _residual(basis: HiddenBasis, F: Floats) -> float:
    """Return the largest entry of the hidden rows of ``change^(-1) F change`` that ``basis`` leaves out."""
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
    """Return S = K_h K_o^(-1); None where no set of eigenvectors with whole complex pairs has that size."""
    V, _, _, partner = _eigenvectors(F)
    seen = len(F) - hidden
    groups = [sorted({k, int(partner[k])}) for k in range(len(F)) if k <= partner[k]]
    # greedily: the eigenvectors whose observed parts are largest after projecting out those chosen before
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
    """Whether ``group`` and some of the other groups, single ones and pairs, add up to ``places``."""
    ones = sum(len(other) == 1 for other in groups) - (len(group) == 1)
    pairs = sum(len(other) == 2 for other in groups) - (len(group) == 2)
    rest = places - len(group)
    return rest >= 0 and ones >= max(rest % 2, rest - 2 * pairs)
