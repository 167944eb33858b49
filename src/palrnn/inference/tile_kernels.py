"""Small products of matrices that stay in the first-level cache, over the open gates only.

A general matrix product does twice the work that a covariance needs: half of J P J^T follows by symmetry, and
a closed gate leaves nothing of its column of W. `product` therefore takes the list of columns that count, and
can stop at the diagonal. Its innermost part is a tile of sums that stays in registers, written as LLVM vector
code, because Numba cannot keep arrays in registers and must assume that they overlap.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from palrnn.engine.kernel import kernel
from palrnn.engine.processors import has_wide_registers

# as many sums as the machine has registers for: 32 of eight numbers each, or 16 of four
LANES, ROWS, VECTORS = (8, 5, 4) if has_wide_registers() else (4, 3, 3)
BLOCK = LANES * VECTORS

_VECTOR, _WORD = ir.VectorType(ir.DoubleType(), LANES), ir.IntType(64)
_FUSED = ("contract",)


def _data(context, builder, signature, arguments, position):
    """The pointer to the first entry of an array argument."""
    array = context.make_array(signature.args[position])
    return array(context, builder, arguments[position]).data


def _vector_at(builder, base, offset):
    return builder.bitcast(builder.gep(base, [offset]), _VECTOR.as_pointer())


def _spread(builder, number):
    """A vector with ``number`` in every lane."""
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, first)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


@intrinsic
def combine(typing, out, at, a, left, left_at, b, right, right_at, dim):
    """out[j] = a left[j] + b right[j] for j < dim, a multiple of 8, from the given position of each array."""
    n, real = types.intp, types.float64

    def generate(context, builder, signature, arguments):
        _, at, a, _, left_at, b, _, right_at, dim = arguments
        out, left, right = (_data(context, builder, signature, arguments, k) for k in (0, 3, 6))
        a, b = _spread(builder, a), _spread(builder, b)
        zero, step = ir.Constant(_WORD, 0), ir.Constant(_WORD, LANES)
        with cgutils.for_range_slice(builder, zero, dim, step, _WORD) as (j, _):
            first = builder.load(_vector_at(builder, left, builder.add(left_at, j)), align=8)
            second = builder.load(_vector_at(builder, right, builder.add(right_at, j)), align=8)
            total = _multiply_add(builder, a, first, builder.fmul(b, second))
            builder.store(total, _vector_at(builder, out, builder.add(at, j)), align=8)
        return context.get_dummy_value()

    return types.void(out, n, real, left, n, real, right, n, n), generate


def _tile(rows, vectors):
    """Return an intrinsic for out[i, j] = sum_k left[i, k] right[k, j], i < rows, j < vectors * LANES.

    Its arguments are those of `product`, with the positions of the tile in ``out`` and ``right``.
    """

    @intrinsic
    def tile(
        typing, out, at, dim, left, left_at, left_row, left_column, right, right_at, active, count, fresh
    ):
        n = types.intp
        signature = types.void(out, n, n, left, n, n, n, right, n, active, n, types.boolean)
        return signature, _tile_code(rows, vectors)

    return tile


def _tile_code(rows, vectors):
    def generate(context, builder, signature, arguments):
        _, at, dim, _, left_at, left_row, left_column, _, right_at, _, count, fresh = arguments
        out, left, right, active = (_data(context, builder, signature, arguments, k) for k in (0, 3, 7, 9))

        def plus(base, step, times):
            return builder.add(base, builder.mul(step, ir.Constant(_WORD, times)))

        def vector(base, offset, number):
            return _vector_at(builder, base, builder.add(offset, ir.Constant(_WORD, LANES * number)))

        places = [[vector(out, plus(at, dim, i), v) for v in range(vectors)] for i in range(rows)]
        left_rows = [plus(left_at, left_row, i) for i in range(rows)]
        clean = builder.trunc(fresh, ir.IntType(1)) if fresh.type.width > 1 else fresh
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        initial = [
            [builder.select(clean, zero, builder.load(place, align=8)) for place in row] for row in places
        ]

        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)

        builder.position_at_end(head)
        k = builder.phi(_WORD)
        k.add_incoming(ir.Constant(_WORD, 0), before)
        sums = [[builder.phi(_VECTOR) for _ in range(vectors)] for _ in range(rows)]
        for i in range(rows):
            for v in range(vectors):
                sums[i][v].add_incoming(initial[i][v], before)
        builder.cbranch(builder.icmp_signed("<", k, count), body, after)

        builder.position_at_end(body)
        unit = builder.load(builder.gep(active, [k]))
        right_start = builder.add(right_at, builder.mul(unit, dim))
        factors = [builder.load(vector(right, right_start, v), align=8) for v in range(vectors)]
        column = builder.mul(unit, left_column)
        for i in range(rows):
            one = _spread(builder, builder.load(builder.gep(left, [builder.add(left_rows[i], column)])))
            for v in range(vectors):
                sums[i][v].add_incoming(_multiply_add(builder, one, factors[v], sums[i][v]), body)
        k.add_incoming(builder.add(k, ir.Constant(_WORD, 1)), body)
        builder.branch(head)

        builder.position_at_end(after)
        for i in range(rows):
            for v in range(vectors):
                builder.store(sums[i][v], places[i][v], align=8)
        return context.get_dummy_value()

    return generate


_rows_1, _rows_2, _rows_3, _rows_4 = (_tile(ROWS, v) for v in (1, 2, 3, 4))
_row_1, _row_2, _row_3, _row_4 = (_tile(1, v) for v in (1, 2, 3, 4))


@kernel
def product(out, dim, left, left_at, left_row, left_column, right, active, count, rows, fresh, upper):
    """out[i, j] = sum_k left[i, k] right[k, j], k the first ``count`` of ``active``, i < ``rows``, j <
    ``dim``.

    ``out`` and ``right`` have rows of length ``dim``, a multiple of 8; left[i, k] is the entry ``left_at + i
    * left_row + k * left_column`` of ``left``. Unless ``fresh``, the sum is added to what ``out`` holds. With
    ``upper``, entries left of the diagonal are undefined.
    """
    i = 0
    while i < rows:
        many = i + ROWS <= rows
        start = left_at + i * left_row
        for j in range(i // LANES * LANES if upper else 0, dim, BLOCK):
            vectors = min(dim - j, BLOCK) // LANES
            at = i * dim + j
            if many:
                if vectors == 4:
                    _rows_4(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
                elif vectors == 3:
                    _rows_3(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
                elif vectors == 2:
                    _rows_2(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
                else:
                    _rows_1(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
            elif vectors == 4:
                _row_4(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
            elif vectors == 3:
                _row_3(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
            elif vectors == 2:
                _row_2(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
            else:
                _row_1(out, at, dim, left, start, left_row, left_column, right, j, active, count, fresh)
        i += ROWS if many else 1
