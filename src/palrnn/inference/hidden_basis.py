"""Coordinates in which hidden units move by themselves.

Hidden units are neither observed nor gated. Nothing looks at one of them alone, so that any coordinates will
do for them. Let z_h and z_o be the hidden and the observed ones of the ungated units, which move by z <- F z
when all gates are closed. With z_h = U y + S z_o,

    y <- U^(-1) T U y,   T = F_hh - S F_oh,   if  F_hh S + F_ho = S (F_oo + F_oh S).

The columns of U are the eigenvectors of T, so that each coordinate of y moves by itself, or as one of a pair
where eigenvalues are complex. Such an S is K_h K_o^(-1), where K holds eigenvectors of F, as many as there
are observed units: they span an invariant subspace. Where no good K is found, S is 0, and observed units move
hidden ones, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

# worse conditioned bases are not used: they could cost six of sixteen digits; trained networks have about 80
_WORST = 1e3


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
    if hidden:
        for S, reach in ((_shift(F, hidden), free), (np.zeros((hidden, free - hidden)), hidden)):
            if S is not None:
                found = _eigenvectors(F[:hidden, :hidden] - S @ F[hidden:, :hidden])
                change = np.eye(free)
                change[:hidden, :hidden], change[:hidden, hidden:] = found.V, S
                if np.linalg.cond(change) < _WORST:
                    return HiddenBasis(change, found.own, found.mate, found.partner, reach)
    return HiddenBasis(np.eye(free), np.zeros(hidden), np.zeros(hidden), np.arange(hidden), 0)


def _eigenvectors(F: Floats) -> _Eigenvectors:
    values, vectors = np.linalg.eig(F)
    # LAPACK puts conjugate pairs side by side, the positive imaginary part first
    first = np.flatnonzero(values.imag > 0)
    V, mate, partner = vectors.real.copy(), values.imag.copy(), np.arange(len(F))
    V[:, first + 1] = vectors[:, first].imag
    partner[first], partner[first + 1] = first + 1, first
    return _Eigenvectors(V, values.real.copy(), mate, partner)


def _shift(F: Floats, hidden: int) -> Floats | None:
    """Return S = K_h K_o^(-1), or None where eigenvectors, pairs unbroken, cannot be counted out."""
    V, _, _, partner = _eigenvectors(F)
    seen = len(F) - hidden
    groups = [sorted({k, int(partner[k])}) for k in range(len(F)) if k <= partner[k]]
    # those that are seen best, and seen differently from those before them
    left = V[hidden:].copy()
    chosen: list[int] = []
    while len(chosen) < seen:
        groups = [group for group in groups if len(chosen) + len(group) <= seen]
        if not groups:
            return None
        sizes = [np.linalg.svd(left[:, group], compute_uv=False)[-1] for group in groups]
        best = groups.pop(int(np.argmax(sizes)))
        chosen += best
        Q = np.linalg.qr(left[:, best])[0]
        left -= Q @ (Q.T @ left)
    K = V[:, chosen]
    return K[:hidden] @ np.linalg.pinv(K[hidden:])
