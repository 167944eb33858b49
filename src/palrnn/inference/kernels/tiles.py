"""Products of small matrices whose entries are lanes: one number for each of several particles.

The beliefs of a bundle of particles lie side by side, entry by entry, so that one vector instruction serves
all of them. A product then needs no shuffling, no padding and no more of a symmetric matrix than its half,
whatever its size. Its innermost part is a tile of sums that stays in registers, written as LLVM vector code,
because Numba cannot keep arrays in registers and must assume that they overlap.

Matrices come in panels of `COLUMNS` neighbouring columns, row after row, so that the lanes that a tile reads
are neighbours. Of a symmetric matrix, a panel ends with the rows of the block on the diagonal. Arrays here
are flat, and places in them count numbers, not lanes.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import REGISTER_BYTES

LANES = REGISTER_BYTES // 8
# of the 32 or 16 registers, all but a few hold sums: a row of factors and one more number are needed besides
ROWS, COLUMNS = (5, 5) if LANES == 8 else (4, 3)
# a single column needs more rows to keep the machine busy
COLUMN_ROWS = 17 if LANES == 8 else 12
# from one row of a panel to the next
STRIDE = COLUMNS * LANES
# AVX-512 can leave lanes of a sum as they are for nothing; elsewhere it is cheaper to set factors to zero
_CHOOSES_SUMS = LANES == 8

_VECTOR, _WORD = ir.VectorType(ir.DoubleType(), LANES), ir.IntType(64)
_NOTHING = ir.Constant(_VECTOR, [0.0] * LANES)
_FUSED = ("contract",)


def _number(value):
    return ir.Constant(_WORD, value)


def _data(context, builder, signature, arguments, position):
    """The pointer to the first entry of an array argument."""
    array = context.make_array(signature.args[position])
    return array(context, builder, arguments[position]).data


def _entry(builder, array, position):
    return builder.load(builder.gep(array, [position]))


def _lanes_at(builder, base, offset):
    return builder.bitcast(builder.gep(base, [offset]), _VECTOR.as_pointer())


def _row(builder, start, step, columns):
    """The lanes at ``start``, ``start + step``, ..., ``columns`` of them."""
    places = [_lanes_at(builder, start, builder.mul(step, _number(v))) for v in range(columns)]
    return [builder.load(place, align=8) for place in places]


def _put_row(builder, start, step, row):
    for v, lanes in enumerate(row):
        builder.store(lanes, _lanes_at(builder, start, builder.mul(step, _number(v))), align=8)


def _spread(builder, number):
    """``number`` in every lane."""
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, first)


def _add_product(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


def _take_product(builder, a, b, c):
    return builder.fsub(c, builder.fmul(a, b, flags=_FUSED), flags=_FUSED)


def _accumulate(builder, sums, count, term):
    """Return ``sums``, rows of lanes, after ``count`` rounds of ``sums = term(k, sums)``, in registers."""
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    k = builder.phi(_WORD)
    running = [[builder.phi(_VECTOR) for _ in row] for row in sums]
    builder.cbranch(builder.icmp_signed("<", k, count), body, after)
    builder.position_at_end(body)
    new = term(k, running)
    k.add_incoming(_number(0), before)
    k.add_incoming(builder.add(k, _number(1)), body)
    builder.branch(head)
    for phis, starts, ends in zip(running, sums, new, strict=True):
        for phi, start, end in zip(phis, starts, ends, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(end, body)
    builder.position_at_end(after)
    return running


def _for_each_size(builder, rows, columns, write):
    """Branch to the code that ``write(rows, columns)`` makes for the tile's size, known when it runs."""
    end = builder.append_basic_block("end")
    sizes = builder.switch(builder.add(builder.mul(rows, _number(16)), columns), end)
    for c in range(1, COLUMNS + 1):
        for r in range(1, (ROWS if c > 1 else COLUMN_ROWS) + 1):
            block = builder.append_basic_block(f"tile_{r}_{c}")
            sizes.add_case(_number(16 * r + c), block)
            builder.position_at_end(block)
            write(r, c)
            builder.branch(end)
    builder.position_at_end(end)


@intrinsic
def _transition_tile(
    typing, out, at, starts, step, J, own, mate, partner, gates, active, first, count, right, right_at, bases,
    steps, table, pairs, row, rows, columns,
):  # fmt: skip
    """One tile of `transition_product`, from ``row`` on, over ``active`` from ``first`` on."""
    n = types.intp

    def generate(context, builder, signature, arguments):
        _, at, _, step, _, _, _, _, _, _, first, count, _, right_at = arguments[:14]
        table, pairs, row, rows, columns = arguments[16:]
        out, starts, J, own, mate, partner, gates, active, right, bases, steps = (
            _data(context, builder, signature, arguments, k) for k in (0, 2, 4, 5, 6, 7, 8, 9, 12, 14, 15)
        )
        shape = context.make_array(signature.args[4])(context, builder, arguments[4]).shape
        length = builder.extract_value(shape, 1)
        out, right, active = (
            builder.gep(array, [place]) for array, place in ((out, at), (right, right_at), (active, first))
        )
        bases, steps = (builder.gep(array, [table]) for array in (bases, steps))
        paired = builder.icmp_signed("!=", pairs, _number(0))
        J, own, mate, partner, starts = (
            builder.gep(array, [row]) for array in (J, own, mate, partner, starts)
        )

        def write(tile_rows, tile_columns):
            def right_row(unit):
                start = builder.gep(right, [_entry(builder, bases, unit)])
                return _row(builder, start, _entry(builder, steps, unit), tile_columns)

            def with_part(sums, factor, units):
                """Add factor_i right[unit_i] to each row i of ``sums``."""
                return [
                    [
                        _add_product(builder, _spread(builder, _entry(builder, factor, _number(i))), x, s)
                        for x, s in zip(right_row(unit), row_sums, strict=True)
                    ]
                    for i, (unit, row_sums) in enumerate(zip(units, sums, strict=True))
                ]

            def put_all(sums):
                for i, totals in enumerate(sums):
                    start = builder.gep(out, [_entry(builder, starts, _number(i))])
                    _put_row(builder, start, step, totals)

            def term(k, running):
                unit = _entry(builder, active, k)
                gate = builder.load(_lanes_at(builder, gates, builder.mul(unit, _number(LANES))), align=8)
                opened = builder.fcmp_ordered(">", gate, _NOTHING)
                factors = right_row(unit)
                if not _CHOOSES_SUMS:
                    factors = [builder.select(opened, x, _NOTHING) for x in factors]
                J_row = builder.gep(J, [builder.mul(unit, length)])
                new = []
                for i, sums in enumerate(running):
                    one = _spread(builder, _entry(builder, J_row, _number(i)))
                    totals = [_add_product(builder, one, x, s) for x, s in zip(factors, sums, strict=True)]
                    if _CHOOSES_SUMS:
                        totals = [builder.select(opened, t, s) for t, s in zip(totals, sums, strict=True)]
                    new.append(totals)
                return new

            sums = _accumulate(builder, [[_NOTHING] * tile_columns] * tile_rows, count, term)
            # last, when all these loads have long been made
            tile = range(tile_rows)
            sums = with_part(sums, own, [builder.add(row, _number(i)) for i in tile])
            with builder.if_else(paired) as (then, otherwise):
                with then:
                    put_all(with_part(sums, mate, [_entry(builder, partner, _number(i)) for i in tile]))
                with otherwise:
                    put_all(sums)

        _for_each_size(builder, rows, columns, write)
        return context.get_dummy_value()

    arguments = (
        out, n, starts, n, J, own, mate, partner, gates, active, n, n, right, n, bases, steps, n, n, n, n, n
    )  # fmt: skip
    return types.void(*arguments), generate


@kernel
def transition_product(
    out, at, starts, step, J, own, mate, partner, hidden, reach, gates, active, count, right, right_at, bases,
    steps, table, columns, end,
):  # fmt: skip
    """out[i, j] = own_i right[i, j] + mate_i right[partner_i, j] + sum_k J[k, i] 1{gate_k > 0} right[k, j].

    For i < ``end`` and ``columns`` columns j, at most `COLUMNS`. The sum is over the first ``count`` units in
    ``active``, of which rows i < ``hidden`` leave out the first ``reach``. ``J (M, M)`` holds numbers,
    ``gates (M, LANES)``, ``right`` and ``out`` hold lanes: right[k, j] at ``right_at + bases[table + k] + j *
    steps[table + k]``, and out[i, j] at ``at + starts[i] + j * step``.
    """
    most = ROWS if columns > 1 else COLUMN_ROWS
    row = 0
    while row < end:
        first, stop = (reach, min(hidden, end)) if row < hidden else (0, end)
        rows = min(most, stop - row)
        _transition_tile(
            out, at, starts, step, J, own, mate, partner, gates, active, first, count - first, right,
            right_at, bases, steps, table, row < hidden, row, rows, columns,
        )  # fmt: skip
        row += rows


@intrinsic
def _downdate_tile(typing, matrix, at, unit, length, count, row, column, rows, columns):
    """One tile of `downdate`, from ``row`` and ``column`` on."""
    n = types.intp

    def generate(context, builder, signature, arguments):
        _, at, _, length, count, row, column, rows, columns = arguments
        matrix, unit = (_data(context, builder, signature, arguments, k) for k in (0, 2))
        left, right = (builder.gep(unit, [builder.mul(k, _number(LANES))]) for k in (row, column))
        matrix = builder.gep(matrix, [builder.add(at, builder.mul(row, _number(STRIDE)))])
        near = _number(LANES)

        def write(tile_rows, tile_columns):
            def term(k, running):
                ahead = builder.mul(k, length)
                factors = _row(builder, builder.gep(right, [ahead]), near, tile_columns)
                lefts = _row(builder, builder.gep(left, [ahead]), near, tile_rows)
                return [
                    [_take_product(builder, a, b, s) for b, s in zip(factors, sums, strict=True)]
                    for a, sums in zip(lefts, running, strict=True)
                ]

            starts = [builder.gep(matrix, [_number(STRIDE * i)]) for i in range(tile_rows)]
            sums = [_row(builder, start, near, tile_columns) for start in starts]
            for start, totals in zip(starts, _accumulate(builder, sums, count, term), strict=True):
                _put_row(builder, start, near, totals)

        _for_each_size(builder, rows, columns, write)
        return context.get_dummy_value()

    return types.void(matrix, n, unit, n, n, n, n, n, n), generate


@kernel
def downdate(matrix, dim, unit, count):
    """matrix[i, j] -= sum_{n < count} unit[n, i] unit[n, j] for i <= j < dim.

    ``matrix`` is symmetric and in panels, ``unit (n, dim, LANES)`` flat.
    """
    at = 0
    for column in range(0, dim, COLUMNS):
        columns = min(COLUMNS, dim - column)
        end = column + columns
        for row in range(0, end, ROWS):
            _downdate_tile(matrix, at, unit, dim * LANES, count, row, column, min(ROWS, end - row), columns)
        at += (column + COLUMNS) * STRIDE
