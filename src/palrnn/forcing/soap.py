"""The bases of SOAP: which weights are a matrix, their second moments, and the turning of moments with bases.

`kernels.soap` has the step. Its bases are those of the latest second moments of rows and columns, found anew
after every `batches.BLOCK` (100) updates; until the first time it is Adam. Other than in the paper (Vyas et
al., 2024) they are eigenvectors, where that takes a step towards them after every tenth update, and not only
first but also second moments that were collected in the old bases are carried over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import ALRNN, ShallowPLRNN, Surrogate
from palrnn.model.surrogate import training_vector

Places = NDArray[np.int64]
#: A side of a matrix that is longer is not turned: its basis would take longer to find than it saves.
LONGEST = 400


@singledispatch
def weight_places(model: Surrogate) -> tuple[Places, ...]:
    """Return the matrices of weights in the training vector of ``model``, each as places ``(m, n)`` in it.

    Columns belong together whose gradient is an outer product of the same errors: weights and bias of a
    layer. A family that is not known here has none, and is trained by RAdam; register it to have SOAP.
    """
    return ()


def turns(optimizer: str, model: Surrogate) -> bool:
    """Whether ``model`` is trained by SOAP: asked for, and with matrices to turn."""
    return optimizer == "soap" and len(weight_places(model)) > 0


@weight_places.register
def _(model: ALRNN) -> tuple[Places, ...]:
    M, K = model.latent_dim, model.input_dim
    W = M + np.arange(M * M).reshape(M, M)
    h = M + M * M + np.arange(M)
    C = M * (M + 2) + np.arange(M * K).reshape(M, K)
    return (np.column_stack([W, h, C]),)


@weight_places.register
def _(model: ShallowPLRNN) -> tuple[Places, ...]:
    M, H, K = model.latent_dim, model.hidden, model.input_dim
    W1 = M + np.arange(M * H).reshape(M, H)
    W2 = M + M * H + np.arange(H * M).reshape(H, M)
    biases = M + 2 * M * H
    h1, h2 = biases + np.arange(M), biases + M + np.arange(H)
    C = biases + M + H + np.arange(M * K).reshape(M, K)
    return np.column_stack([W1, h1, C]), np.column_stack([W2, h2])


class Block(NamedTuple):
    """A matrix of weights ``(m, n)`` as `kernels.soap.soap_step` takes it, with room to work in."""

    places: Places
    L: Floats
    R: Floats
    QL: Floats
    QR: Floats
    G: Floats
    across: Floats
    down: Floats
    turned: Floats


def curvature_of(model: Surrogate) -> Floats:
    """Return the second moments and bases before the first update, of all matrices one after the other."""
    sides = [side for places in _all_places(model) for side in _sides(places)]
    parts = [part for side in sides for part in (np.zeros(side * side), np.eye(side).ravel())]
    return np.concatenate(parts) if parts else np.empty(0)


def blocks_in(model: Surrogate, curvature: Floats) -> tuple[Block, ...]:
    """Return the blocks whose second moments and bases are views of ``curvature``."""
    found, begin = [], 0

    def view(side: int) -> Floats:
        nonlocal begin
        begin += side * side
        return curvature[begin - side * side : begin].reshape(side, side)

    for places in _all_places(model):
        (m, n), (left, right) = places.shape, _sides(places)
        L, QL, R, QR = view(left), view(left), view(right), view(right)
        room = np.empty((m, n)), np.empty((left, left)), np.empty((right, right)), np.empty((m, n))
        found.append(Block(places, L, R, QL, QR, *room))
    return tuple(found)


def turn_bases(blocks: Sequence[Block], first: NDArray[Any], second: NDArray[Any]) -> None:
    """Turn the bases to the eigenvectors of the second moments, and what was collected in the old ones.

    With P the old basis in the new one, ``m <- PL m PR^T``. Of squares, ``v <- PL^2 v (PR^2)^T`` with squares
    entry by entry, as if turned gradients were uncorrelated: in their eigenbasis they nearly are.
    """
    for block in blocks:
        m, v = (moments[block.places].astype(np.float64) for moments in (first, second))
        PL, PR = _turned(block.L, block.QL), _turned(block.R, block.QR)
        if PL is not None:
            m, v = PL @ m, PL**2 @ v
        if PR is not None:
            m, v = m @ PR.T, v @ (PR**2).T
        first[block.places], second[block.places] = m, v


def _turned(moments: Floats, basis: Floats) -> Floats | None:
    """Turn ``basis`` in place and return the old one in terms of the new; None of a side without one."""
    if not basis.size:
        return None
    new = np.linalg.eigh(moments)[1][:, ::-1]
    old = new.T @ basis
    basis[:] = new
    return old


def _sides(places: Places) -> tuple[int, int]:
    """Return the sides of a matrix that are turned, 0 for one that is not."""
    if min(places.shape) < 2:
        return 0, 0
    rows, columns = (side if side <= LONGEST else 0 for side in places.shape)
    return rows, columns


def _all_places(model: Surrogate) -> tuple[Places, ...]:
    """Return all parameters: those that are in no matrix in one row, then the matrices."""
    matrices = weight_places(model)
    alone = np.ones(training_vector(model).size, dtype=bool)
    for places in matrices:
        alone[places] = False
    rows = [np.flatnonzero(alone)[None]] if alone.any() else []
    return tuple(np.ascontiguousarray(each) for each in (*rows, *matrices) if each.size)
