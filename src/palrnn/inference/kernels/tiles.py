"""Products of small matrices whose entries are vectors: one number for each of several particles.

The beliefs of a bundle of `LANES` particles lie side by side, entry by entry, so that one vector instruction
serves all of them. A product then needs no shuffling, no padding and no more of a symmetric matrix than its
half, whatever its size. Its innermost part is a tile of sums that stays in registers (see `vector_code`).

A matrix lies in panels of `COLUMNS` neighbouring columns, row after row. Of a symmetric matrix, a panel ends
with the rows of its block on the diagonal. With seven units and three columns to a panel, a covariance is

    panel 0             panel 1             panel 2
     0 | 00 01 02        3 | 03 04 05        9 | 06  .  .        number of the row in memory | its entries;
     1 | 10 11 12        4 | 13 14 15       10 | 16  .  .        a dot is room that is not used
     2 | 20 21 22        5 | 23 24 25       11 | 26  .  .
        (30 31 32)       6 | 33 34 35       12 | 36  .  .        row k of panel p is row
        (40 41 42)       7 | 43 44 45       13 | 46  .  .        COLUMNS p (p + 1) / 2 + k in memory,
        (50 51 52)       8 | 53 54 55       14 | 56  .  .        column v begins v LANES into it,
        (60 61 62)          (63 64 65)      15 | 66  .  .        and a row takes STRIDE numbers

Entries in brackets are not kept: 51 is read where 15 is. So neighbours in a row of a panel are LANES numbers
apart where they are kept and STRIDE numbers where they are not, which is what the ``steps`` of a view say,
row by row. Arrays here are flat, and places in them count numbers, not vectors.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from palrnn.engine.kernel import kernel
from palrnn.engine.vector_code import FLOATS, LANES, WHOLES, OperandType, VectorCode, emitted

# of the 32 or 16 registers, all but a few hold sums: a row of factors and one more number are needed besides
ROWS, COLUMNS = (5, 5) if LANES == 8 else (4, 3)
# a single column needs more rows to keep the machine busy
COLUMN_ROWS = 17 if LANES == 8 else 12
# the most rows of a tile of 1, 2, ... columns
MOST_ROWS = (COLUMN_ROWS,) + (ROWS,) * (COLUMNS - 1)
# from one row of a panel to the next
STRIDE = COLUMNS * LANES
# AVX-512 can leave lanes of a sum as they are for nothing; elsewhere it is cheaper to set factors to zero
_MASKS_SUMS = LANES == 8

GATED_MATRIX = OperandType(
    "GatedMatrix",
    J=FLOATS, own=FLOATS, mate=FLOATS, partner=WHOLES, gates=FLOATS, active=WHOLES, length=types.intp,
    hidden=types.intp, reach=types.intp, count=types.intp,
)  # fmt: skip


@intrinsic
def gated_matrix(typing, arrays, work, count):
    """J = A + W D(c) of a bundle as one operand: from `FilterArrays`, and from `Workspace` the gates c and
    the first ``count`` units in ``active``, those that are open in some lane."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder)
        arrays, work, count = code.arguments(signature, arguments)
        return code.operand(
            GATED_MATRIX,
            J=arrays.J, own=arrays.own, mate=arrays.mate, partner=arrays.partner, gates=work.gates,
            active=work.active, length=arrays.latent_dim, hidden=arrays.hidden, reach=arrays.reach,
            count=count,
        )  # fmt: skip

    return GATED_MATRIX(arrays, work, types.intp), generate


@emitted
def _transition_tile(code, out, matrix, right, first, paired, row, rows, columns):
    """One tile of `transition_product`, from ``row`` on, over active units from ``first`` on."""
    active, count = code.at(matrix.active, first), code.builder.sub(matrix.count, first)
    # what belongs to the rows of this tile
    J, own, mate, partner = (
        code.at(array, row) for array in (matrix.J, matrix.own, matrix.mate, matrix.partner)
    )
    starts, steps = code.at(out.starts, row), code.at(out.steps, row)

    def write(tile_rows, tile_columns):
        def right_row(unit):
            start = code.at(right.base, code.entry(right.starts, unit))
            return code.load_row(start, code.entry(right.steps, unit), tile_columns)

        def with_multiples(sums, factors, units):
            """Add factors_i right[unit_i] to each row i of ``sums``."""
            return [
                [
                    code.multiply_add(code.broadcast(code.entry(factors, i)), x, s)
                    for x, s in zip(right_row(unit), row_sums, strict=True)
                ]
                for i, (unit, row_sums) in enumerate(zip(units, sums, strict=True))
            ]

        def store_all(sums):
            for i, totals in enumerate(sums):
                code.store_row(totals, code.at(out.base, code.entry(starts, i)), code.entry(steps, i))

        def term(k, running):
            unit = code.entry(active, k)
            opened = code.positive(code.load(code.at(matrix.gates, code.product(unit, LANES))))
            factors = right_row(unit)
            if not _MASKS_SUMS:
                factors = [code.select(opened, x, code.zero) for x in factors]
            column = code.at(J, code.product(unit, matrix.length))
            new = []
            for i, sums in enumerate(running):
                one = code.broadcast(code.entry(column, i))
                totals = [code.multiply_add(one, x, s) for x, s in zip(factors, sums, strict=True)]
                if _MASKS_SUMS:
                    totals = [code.select(opened, t, s) for t, s in zip(totals, sums, strict=True)]
                new.append(totals)
            return new

        sums = code.accumulate([[code.zero] * tile_columns] * tile_rows, count, term)
        # last, when all these loads have long been made
        tile = range(tile_rows)
        sums = with_multiples(sums, own, [code.builder.add(row, code.whole(i)) for i in tile])
        with code.if_positive(paired) as (then, otherwise):
            with then:
                store_all(with_multiples(sums, mate, [code.entry(partner, i) for i in tile]))
            with otherwise:
                store_all(sums)

    code.for_each_size(rows, columns, MOST_ROWS, write)


@kernel
def transition_product(out, matrix, right, columns, end):
    """out[i, v] = own_i right[i, v] + mate_i right[partner_i, v] + sum_k J[k, i] 1{gate_k > 0} right[k, v]:
    rows i < ``end`` of J times the first ``columns`` columns v of ``right``, at most `COLUMNS`.

    The sum is over active units, of which rows i < hidden leave out the first ``reach`` (see `FilterArrays`).
    ``out`` and ``right`` are views, ``matrix`` comes from `gated_matrix`.
    """
    most, hidden = ROWS if columns > 1 else COLUMN_ROWS, matrix.hidden
    row = 0
    while row < end:
        first, stop = (matrix.reach, min(hidden, end)) if row < hidden else (0, end)
        rows = min(most, stop - row)
        _transition_tile(out, matrix, right, first, row < hidden, row, rows, columns)
        row += rows


@emitted
def _downdate_tile(code, cov, panel, factors, length, count, row, column, rows, columns):
    """One tile of `downdate`, from ``row`` and ``column`` on, in the panel that begins at ``panel``."""
    left, right = (code.at(factors, code.product(k, LANES)) for k in (row, column))
    corner = code.at(code.at(cov, panel), code.product(row, STRIDE))

    def write(tile_rows, tile_columns):
        def term(k, running):
            ahead = code.product(k, length)
            rights = code.load_row(code.at(right, ahead), LANES, tile_columns)
            lefts = code.load_row(code.at(left, ahead), LANES, tile_rows)
            return [
                [code.subtract_product(s, a, b) for b, s in zip(rights, sums, strict=True)]
                for a, sums in zip(lefts, running, strict=True)
            ]

        starts = [code.at(corner, STRIDE * i) for i in range(tile_rows)]
        sums = [code.load_row(start, LANES, tile_columns) for start in starts]
        for start, totals in zip(starts, code.accumulate(sums, count, term), strict=True):
            code.store_row(totals, start, LANES)

    code.for_each_size(rows, columns, MOST_ROWS, write)


@kernel
def downdate(cov, dim, factors, count):
    """cov[i, j] -= sum_{n < count} factors[n, i] factors[n, j] for i <= j < dim.

    ``cov`` is symmetric and in panels, ``factors (n, dim, LANES)`` flat.
    """
    panel, length = 0, dim * LANES
    for column in range(0, dim, COLUMNS):
        columns = min(COLUMNS, dim - column)
        end = column + columns
        for row in range(0, end, ROWS):
            _downdate_tile(cov, panel, factors, length, count, row, column, min(ROWS, end - row), columns)
        panel += (column + COLUMNS) * STRIDE
