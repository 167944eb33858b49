"""Lanes compute what the same operations on whole arrays compute."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    REGISTER_BYTES,
    add,
    add_rows,
    broadcast,
    div,
    flush_small,
    fma,
    fma_column,
    lane_count,
    load,
    load_broadcast,
    load_pair,
    load_span,
    load_tile,
    maximum,
    mul,
    pair_rows,
    rows_of_pairs,
    sqrt,
    store,
    store_tile,
    tile,
    where_greater,
)


@kernel
def count(a):
    return lane_count(a)


@kernel
def each(a, b, c, sums, products, rectified, chosen, cleaned, copies):
    lanes = lane_count(a)
    for k in range(0, a.shape[0], lanes):
        x, y, z = load(a, k), load(b, k), load(c, k)
        store(sums, k, add(x, y))
        store(products, k, fma(x, y, z))
        store(rectified, k, maximum(x, y))
        store(chosen, k, where_greater(x, y, z))
        store(cleaned, k, flush_small(x, y))
        store(copies, k, load_broadcast(a, k + 1))


@kernel
def quotients_and_roots(a, b, number, quotients, roots, squares, numbers):
    for k in range(0, a.shape[0], lane_count(a)):
        x = load(a, k)
        store(quotients, k, div(x, load(b, k)))
        store(roots, k, sqrt(x))
        store(squares, k, mul(x, x))
        store(numbers, k, broadcast(number))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_and_roots_are_correctly_rounded(dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(0, 3, 64).astype(dtype) for _ in range(2))
    a[3], b[7], a[20] = np.nan, 0, np.inf
    results = [np.empty_like(a) for _ in range(4)]
    quotients_and_roots(a, b, dtype(0.3), *results)
    with np.errstate(all="ignore"):
        wanted = a / b, np.sqrt(a), a * a, np.full_like(a, dtype(0.3))
    for result, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_operation_equals_its_definition(dtype):
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(64).astype(dtype) for _ in range(3))
    a[[5, 40]] = np.nan
    sums, products, rectified, chosen, cleaned, copies = (np.empty_like(a) for _ in range(6))
    each(a, b, c, sums, products, rectified, chosen, cleaned, copies)
    np.testing.assert_array_equal(sums, a + b)
    # one rounding instead of two: within two units in the last place of the larger part
    np.testing.assert_allclose(products, a * b + c, rtol=0, atol=8 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(rectified, np.where(a < b, b, a))
    np.testing.assert_array_equal(chosen, np.where(a > b, c, 0))
    np.testing.assert_array_equal(cleaned, np.where(np.abs(a) < b, 0, a))
    lanes = count(a)
    np.testing.assert_array_equal(copies, np.repeat(a[1::lanes], lanes))
    # NaN stays NaN where it must be noticed, and closes a gate
    assert np.isnan(rectified[[5, 40]]).all()
    assert np.isnan(cleaned[[5, 40]]).all()
    assert (chosen[[5, 40]] == 0).all()


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 4), (np.float64, 8)])
def test_lanes_fill_a_register(dtype, size):
    assert count(np.empty(1, dtype)) == REGISTER_BYTES // size


@kernel
def tile_of(span, a, b, low, sums, clipped, products, totals):
    """sums = a b + low, and what else is asked of a tile; a (R, K), b (K, C), and ``low`` (C,) as a span."""
    inner, width = a.shape[1], b.shape[1]
    total = tile(span)
    for k in range(inner):
        total = fma_column(a, k, inner, load_span(b, k * width, span), total)
    store_tile(sums, 0, width, span, total)
    again = load_tile(sums, 0, width, span)
    store_tile(clipped, 0, width, span, maximum(again, load_span(low, 0, span)))
    store_tile(products, 0, width, span, mul(span, again))
    store(totals, 0, add_rows(span, again))


@kernel
def eight_rows(*arrays):
    tile_of(load(arrays[2], 0), *arrays)


@kernel
def rows_of_two(*arrays):
    tile_of(load_pair(arrays[2], 0), *arrays)


@kernel
def compiled_rows(a):
    return pair_rows(a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_and_workspaces_agree_on_the_rows_of_a_tile(dtype):
    assert compiled_rows(np.empty(1, dtype)) == rows_of_pairs(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("of", "columns"), [(eight_rows, 1), (rows_of_two, 2)])
def test_a_tile_is_its_rows(dtype, of, columns):
    rng, rows = np.random.default_rng(2), 8 if columns == 1 else rows_of_pairs(dtype)
    width = columns * REGISTER_BYTES // np.dtype(dtype).itemsize
    a, b = rng.standard_normal((rows, 5)).astype(dtype), rng.standard_normal((5, width)).astype(dtype)
    low = rng.standard_normal(width).astype(dtype)
    sums, clipped, products = (np.empty((rows, width), dtype) for _ in range(3))
    totals = np.empty(width, dtype)
    of(a, b, low, sums, clipped, products, totals)
    # six roundings
    np.testing.assert_allclose(sums, a @ b + low, rtol=0, atol=20 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(clipped, np.maximum(sums, low))
    np.testing.assert_array_equal(products, low * sums)
    # up to eight roundings of sums up to ten
    np.testing.assert_allclose(totals, low + sums.sum(axis=0), rtol=0, atol=80 * np.finfo(dtype).eps)
