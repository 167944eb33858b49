"""Products and copies inside kernels: the BLAS's own, of every layout, and nothing for empty ones."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from palrnn.engine.kernel import kernel, pin_blas
from palrnn.engine.products import clear, copy, product


@kernel
def _plain(a, b, out):
    product(a, b, out)


@kernel
def _transposed(a, b, out):
    product(a.T, b, out)


@kernel
def _both(a, b, out):
    product(a.T, b.T, out)


@kernel
def _across(a, b, out):
    product(a, b.T, out)


@kernel
def _copied(source, out):
    copy(source, out)


@kernel
def _cleared(out):
    clear(out)


@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (7,), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clearing_leaves_zeros_and_nothing_beside_them(shape, dtype):
    size = int(np.prod(shape))
    whole = np.full(size + 8, 7.0, dtype)
    _cleared(whole[4 : 4 + size].reshape(shape))
    assert not whole[4 : 4 + size].any()
    assert (whole[:4] == 7.0).all()
    assert (whole[4 + size :] == 7.0).all()


def test_clearing_takes_contiguous_arrays_only():
    with pytest.raises(TypingError, match="clear takes a contiguous array of numbers"):
        _cleared(np.zeros((4, 4))[:, ::2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(3, 4, 5), (1, 7, 1), (16, 30, 30), (2, 0, 3), (0, 2, 3)]
)
def test_products_are_those_of_numpy(dtype, rows, inner, columns):
    pin_blas()
    rng = np.random.default_rng(rows * 100 + inner)
    a, b = (
        rng.standard_normal((rows, inner)).astype(dtype),
        rng.standard_normal((inner, columns)).astype(dtype),
    )
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    for call, x, y in ((_plain, a, b), (_transposed, left, b), (_both, left, right)):
        out = np.full((rows, columns), np.nan, dtype)
        call(x, y, out)
        # sums of at most thirty products
        np.testing.assert_allclose(out, a @ b, rtol=0, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (1, 7), (30, 30), (0, 3), (3, 0)])
def test_products_with_vectors_are_those_of_numpy(dtype, rows, columns):
    pin_blas()
    rng = np.random.default_rng(rows * 100 + columns)
    matrix = rng.standard_normal((rows, columns)).astype(dtype)
    across = np.ascontiguousarray(matrix.T)
    right, left = rng.standard_normal(columns).astype(dtype), rng.standard_normal(rows).astype(dtype)
    cases = (
        (_plain, matrix, right, matrix @ right),
        (_transposed, across, right, matrix @ right),
        (_plain, left, matrix, left @ matrix),
        (_across, left, across, left @ matrix),
    )
    for call, x, y, wanted in cases:
        out = np.full(wanted.shape, np.nan, dtype)
        call(x, y, out)
        np.testing.assert_allclose(out, wanted, rtol=0, atol=50 * np.finfo(dtype).eps)


def test_copies_of_every_layout_are_whole():
    source = np.arange(24.0).reshape(4, 6)
    for old, new in (
        (source, np.empty((4, 6))),
        (source.T, np.empty((6, 4))),
        (source[:, 1:3], np.empty((4, 2))),
        (source[:, 2], np.empty(4)),
        (source[1], np.empty((6, 4))[:, 1]),
        (source, np.empty((4, 6), np.float32)),
        (source[:0], np.empty((0, 6))),
    ):
        _copied(old, new)
        np.testing.assert_array_equal(new, old)


def test_what_is_no_contiguous_matrix_is_refused_when_the_kernel_is_compiled():
    with pytest.raises(TypingError, match="product takes contiguous matrices of one dtype"):
        _plain(np.ones((4, 4))[::2], np.ones((4, 4)), np.ones((2, 4)))
