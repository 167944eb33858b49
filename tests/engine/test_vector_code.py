"""Code that is written by hand computes what it says, and reaches its arguments by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import types
from numba.extending import intrinsic

from palrnn.engine.kernel import kernel
from palrnn.engine.vector_code import FLOATS, LANES, OperandType, VectorCode, emitted, view


class Layout(NamedTuple):
    starts: np.ndarray
    steps: np.ndarray


class Pair(NamedTuple):
    numbers: np.ndarray
    offset: int


@emitted
def _scale(code, out, row, factor):
    product = code.mul(code.load(row), code.broadcast(code.entry(factor, 1)))
    code.store(product, out)


@kernel
def scale(out, row, factor):
    _scale(out, row, factor)


def test_arguments_arrive_in_the_order_of_their_names():
    out, row, factor = np.zeros(LANES), np.arange(LANES) + 0.5, np.array([7.0, -2.0])
    scale(out, row, factor)
    np.testing.assert_array_equal(out, -2.0 * row)


@emitted
def _tile(code, out, left, right, count, rows, columns):
    """out[i, v] = sum_k left[k, i] right[k, v] where left is positive, minus the same where it is not."""

    def write(tile_rows, tile_columns):
        def term(k, sums):
            start = code.at(right.base, code.entry(right.starts, k))
            vectors = code.load_row(start, code.entry(right.steps, k), tile_columns)
            new = []
            for i, row in enumerate(sums):
                factor = code.broadcast(code.entry(left, code.builder.add(code.product(k, 5), code.whole(i))))
                more = [code.multiply_add(factor, x, s) for x, s in zip(vectors, row, strict=True)]
                less = [code.subtract_product(s, factor, x) for x, s in zip(vectors, row, strict=True)]
                opened = code.positive(factor)
                new.append([code.select(opened, a, b) for a, b in zip(more, less, strict=True)])
            return new

        sums = code.accumulate([[code.zero] * tile_columns] * tile_rows, count, term)
        for i, row in enumerate(sums):
            code.store_row(row, code.at(out.base, code.entry(out.starts, i)), code.entry(out.steps, i))

    code.for_each_size(rows, columns, (5, 3, 3), write)


@kernel
def tile(out, out_layout, left, right, right_layout, first, count, rows, columns):
    _tile(view(out, 0, out_layout, 0), left, view(right, LANES, right_layout, first), count, rows, columns)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_tile_of_any_size_is_a_product_of_strided_views(rows, columns, count):
    rng = np.random.default_rng(rows + 10 * columns)
    left, memory = rng.standard_normal((6, 5)), rng.standard_normal(400)
    # rows in any order, neighbours one or two vectors apart; the view begins with the second row of the table
    starts, steps = LANES * np.array([9, 0, 12, 3, 20]), LANES * np.array([1, 2, 1, 2, 1])
    out, out_starts = np.zeros(3 * 9 * LANES), 9 * LANES * np.arange(3)[::-1]
    out_layout = Layout(np.ascontiguousarray(out_starts), np.full(3, 3 * LANES))
    tile(out, out_layout, left, memory, Layout(starts, steps), 1, count, rows, columns)
    expected = np.zeros_like(out)
    for i in range(rows):
        for v in range(columns):
            at = out_starts[i] + v * 3 * LANES
            for k in range(count):
                place = LANES + starts[1 + k] + v * steps[1 + k]
                expected[at : at + LANES] += abs(left[k, i]) * memory[place : place + LANES]
    # at most four products
    np.testing.assert_allclose(out, expected, atol=1e-14)


TAGGED = OperandType("Tagged", numbers=FLOATS, offset=types.intp)


@intrinsic
def tagged(typing, pair):
    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder)
        (pair,) = code.arguments(signature, arguments)
        return code.operand(TAGGED, numbers=pair.numbers, offset=pair.offset)

    return TAGGED(pair), generate


@emitted
def _first_of(code, out, operand):
    code.store(code.broadcast(code.entry(operand.numbers, operand.offset)), out)


@kernel
def through_an_operand(out, pair):
    operand = tagged(pair)
    _first_of(out, operand)
    return operand.offset


def test_an_operand_carries_members_of_a_tuple_by_name():
    out = np.zeros(LANES)
    assert through_an_operand(out, Pair(np.array([1.0, 2.0, 3.0]), 2)) == 2
    np.testing.assert_array_equal(out, 3.0)


@emitted
def _choose(code, out, flag):
    with code.if_positive(flag) as (then, otherwise):
        with then:
            code.store(code.broadcast(code.entry(out, 1)), out)
        with otherwise:
            code.store(code.zero, out)


@kernel
def choose(out, flag):
    _choose(out, flag)


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_is_taken_when_it_runs(flag):
    out = np.arange(LANES) + 3.0
    choose(out, flag)
    np.testing.assert_array_equal(out, 4.0 if flag else 0.0)
