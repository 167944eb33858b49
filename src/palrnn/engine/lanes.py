"""Lanes: short vectors that live in one machine register, for inner loops that no library covers.

A product of a few rows with a small matrix, with something done to each result, is faster as one loop than as
a call to BLAS and a second loop over the result. Compilers do not find that loop by themselves. These words
let a kernel write it down, in terms that every processor has:

    total = fma(load_broadcast(a, i), load(b, j), total)    # 16 float32 multiplications and additions at once

A *tile* is a few rows of vectors, as many sums as are kept in registers. A loop over it reads a number per
row and a vector per column in each round, so that four rows of two columns cost six reads where eight rows of
one cost nine. The shape goes with a *span*, the columns of one row: lanes (eight rows), or a pair of lanes
(`load_pair`; four or eight rows, `pair_rows`). Words on lanes also take tiles, beside which a span is the
same in all rows (`tile`, `load_tile`).

Offsets count elements from the array's beginning; arrays are contiguous; nothing is checked. The number of
lanes depends on the processor (`lane_count`), the result of a loop over them does not. Tiles of sums, which
need more than words, are written with `vector_code`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from palrnn.engine import vector_code
from palrnn.engine.vector_code import REGISTER_BYTES

#: Rows of a tile of lanes: as many sums as fit into registers on every processor.
EIGHT = 8


def rows_of_pairs(dtype: Any) -> int:
    """Return the rows of a tile of pairs, by the dtype of its numbers.

    AVX-512 has room for sixteen sums, which hide the time that one takes. They are for training, in float32
    and with many sequences side by side; float64 is for a few, whose tiles would be filled with nothing.
    """
    return 8 if REGISTER_BYTES == 64 and np.dtype(dtype) == np.float32 else 4


class LanesType(types.Type):
    """The Numba type of as many floats as fit into a register."""

    def __init__(self, element: Any) -> None:
        self.element, self.count = element, REGISTER_BYTES * 8 // element.bitwidth
        super().__init__(name=f"Lanes({self.count} x {element})")

    @property
    def suffix(self) -> str:
        """How LLVM names functions on this type."""
        return f"v{self.count}f{self.element.bitwidth}"


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """Lanes are an LLVM vector."""

    def __init__(self, manager: Any, lanes: LanesType) -> None:
        element = ir.FloatType() if lanes.element.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.count))


def _address(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [offset])


def _call(builder: Any, name: str, lanes: LanesType, arguments: Any) -> Any:
    """One of LLVM's own functions, of as many vectors as are given."""
    vector = arguments[0].type
    kind = ir.FunctionType(vector, [vector] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.{lanes.suffix}")
    return builder.call(function, arguments)


@intrinsic
def lane_count(typing: Any, array: Any) -> Any:
    """The number of lanes of the array's dtype, a constant to the compiler."""
    count = LanesType(array.dtype).count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, count)

    return types.intp(array), generate


@intrinsic
def pair_rows(typing: Any, array: Any) -> Any:
    """The rows of a tile of pairs of the array's dtype, a constant to the compiler."""
    rows = _tile_rows(types.UniTuple(LanesType(array.dtype), 2))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, rows)

    return types.intp(array), generate


@intrinsic
def load(typing: Any, array: Any, offset: Any) -> Any:
    """The elements from ``offset`` on, one per lane."""
    lanes = LanesType(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments)
        return _loaded(context, builder, lanes, place, 1)[0]

    return lanes(array, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, offset: Any, span: Any) -> Any:
    """Write a span to the elements from ``offset`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments[:2])
        _store(context, builder, place, _spread(builder, span, arguments[2], _columns(span)))
        return context.get_dummy_value()

    return types.void(array, types.intp, span), generate


@intrinsic
def load_broadcast(typing: Any, array: Any, offset: Any) -> Any:
    """The element at ``offset``, in every lane."""
    lanes = LanesType(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(_address(context, builder, signature.args[0], *arguments))
        return vector_code.broadcast(builder, context.get_value_type(lanes), value)

    return lanes(array, types.intp), generate


@intrinsic
def broadcast(typing: Any, value: Any) -> Any:
    """``value``, a float, in every lane."""
    lanes = LanesType(value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return vector_code.broadcast(builder, context.get_value_type(lanes), arguments[0])

    return lanes(value), generate


@intrinsic
def add(typing: Any, a: Any, b: Any) -> Any:
    """``a + b``."""
    return _each(lambda builder, lanes, values: builder.fadd(*values), a, b)


@intrinsic
def mul(typing: Any, a: Any, b: Any) -> Any:
    """``a * b``."""
    return _each(lambda builder, lanes, values: builder.fmul(*values), a, b)


@intrinsic
def div(typing: Any, a: Any, b: Any) -> Any:
    """``a / b``."""
    return a(a, b), lambda context, builder, signature, arguments: builder.fdiv(*arguments)


@intrinsic
def sqrt(typing: Any, a: Any) -> Any:
    """The square root of ``a``."""
    return a(a), lambda context, builder, signature, arguments: _call(builder, "sqrt", a, arguments)


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once."""
    return _each(lambda builder, lanes, values: _call(builder, "fma", lanes, values), a, b, c)


@intrinsic
def maximum(typing: Any, a: Any, low: Any) -> Any:
    """``max(a, low)``; NaN in ``a`` stays NaN."""

    def larger(builder: Any, lanes: LanesType, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *values), values[1], values[0])

    return _each(larger, a, low)


@intrinsic
def where_greater(typing: Any, a: Any, b: Any, value: Any) -> Any:
    """``value`` in the lanes where ``a > b``, else 0."""

    def chosen(builder: Any, lanes: LanesType, values: Any) -> Any:
        greater = builder.fcmp_ordered(">", *values[:2])
        return builder.select(greater, values[2], ir.Constant(values[2].type, None))

    return _each(chosen, a, b, value)


@intrinsic
def flush_small(typing: Any, a: Any, tiny: Any) -> Any:
    """``a``, with 0 in the lanes where ``|a| < tiny``; NaN stays NaN."""

    def flushed(builder: Any, lanes: LanesType, values: Any) -> Any:
        size = _call(builder, "fabs", lanes, values[:1])
        small = builder.fcmp_ordered("<", size, values[1])
        return builder.select(small, ir.Constant(values[0].type, None), values[0])

    return _each(flushed, a, tiny)


@intrinsic
def load_pair(typing: Any, array: Any, offset: Any) -> Any:
    """Two vectors of lanes: the elements from ``offset`` on."""
    pair = types.UniTuple(LanesType(array.dtype), 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments)
        return context.make_tuple(builder, pair, _loaded(context, builder, pair.dtype, place, 2))

    return pair(array, types.intp), generate


@intrinsic
def twice(typing: Any, lanes: Any) -> Any:
    """The pair of ``lanes`` and ``lanes``."""
    pair = types.UniTuple(lanes, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, pair, [arguments[0]] * 2)

    return pair(lanes), generate


@intrinsic
def load_span(typing: Any, array: Any, offset: Any, span: Any) -> Any:
    """The elements from ``offset`` on, as many as ``span`` has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments[:2])
        loaded = _loaded(context, builder, _lanes(span), place, _columns(span))
        return context.make_tuple(builder, span, loaded) if len(loaded) > 1 else loaded[0]

    return span(array, types.intp, span), generate


@intrinsic
def tile(typing: Any, span: Any) -> Any:
    """The tile whose rows are all ``span``."""
    vectors = _tile_type(span)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, vectors, _spread(builder, span, arguments[0], vectors.count))

    return vectors(span), generate


@intrinsic
def load_tile(typing: Any, array: Any, offset: Any, width: Any, span: Any) -> Any:
    """The tile with rows from ``offset``, ``offset + width``, ... on, shaped by ``span``."""
    vectors, columns = _tile_type(span), _columns(span)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values: list[Any] = []
        for place in _rows(context, builder, signature.args[0], arguments, span):
            values += _loaded(context, builder, vectors.dtype, place, columns)
        return context.make_tuple(builder, vectors, values)

    return vectors(array, types.intp, types.intp, span), generate


@intrinsic
def store_tile(typing: Any, array: Any, offset: Any, width: Any, span: Any, values: Any) -> Any:
    """Write a tile, shaped by ``span``, to rows from ``offset``, ``offset + width``, ... on."""
    columns = _columns(span)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for r, place in enumerate(_rows(context, builder, signature.args[0], arguments, span)):
            vectors = range(r * columns, (r + 1) * columns)
            _store(context, builder, place, [builder.extract_value(arguments[4], v) for v in vectors])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, span, values), generate


@intrinsic
def add_rows(typing: Any, span: Any, values: Any) -> Any:
    """``span`` plus all rows of a tile."""
    columns = _columns(span)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums = _spread(builder, span, arguments[0], columns)
        for v in range(values.count):
            sums[v % columns] = builder.fadd(sums[v % columns], builder.extract_value(arguments[1], v))
        return context.make_tuple(builder, span, sums) if columns > 1 else sums[0]

    return span(span, values), generate


@intrinsic
def fma_lanes(typing: Any, a: Any, b: Any, total: Any) -> Any:
    """Lanes ``total`` plus the products of the spans ``a`` and ``b``, vector by vector."""
    columns = _columns(a)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[2]
        left, right = (_spread(builder, a, each, columns) for each in arguments[:2])
        for factors in zip(left, right, strict=True):
            value = _call(builder, "fma", total, [*factors, value])
        return value

    return total(a, b, total), generate


@intrinsic
def fma_column(typing: Any, array: Any, offset: Any, width: Any, span: Any, sums: Any) -> Any:
    """The tile ``sums`` plus ``span`` times numbers at ``offset``, ``offset + width``, ..., one per row."""
    lanes, columns = _lanes(span), _columns(span)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = []
        factors = _spread(builder, span, arguments[3], columns)
        for r, place in enumerate(_rows(context, builder, signature.args[0], arguments, span)):
            number = vector_code.broadcast(builder, context.get_value_type(lanes), builder.load(place))
            for c, factor in enumerate(factors):
                total = builder.extract_value(arguments[4], r * columns + c)
                values.append(_call(builder, "fma", lanes, [number, factor, total]))
        return context.make_tuple(builder, sums, values)

    return sums(array, types.intp, types.intp, span, sums), generate


def _columns(span: Any) -> int:
    """Return the number of vectors."""
    return len(span) if isinstance(span, types.UniTuple) else 1


def _tile_type(span: Any) -> Any:
    """Return the type of the tile whose rows are like ``span``."""
    return types.UniTuple(_lanes(span), _columns(span) * _tile_rows(span))


def _tile_rows(span: Any) -> int:
    """Return the number of rows of that tile."""
    return EIGHT if _columns(span) == 1 else rows_of_pairs(f"f{_lanes(span).element.bitwidth // 8}")


def _lanes(kind: Any) -> Any:
    """Return the type of one vector of a span or a tile."""
    return kind.dtype if isinstance(kind, types.UniTuple) else kind


def _spread(builder: Any, kind: Any, value: Any, count: int) -> list[Any]:
    """Return ``count`` vectors, those of a span or a tile, from the first on again where these are fewer."""
    columns = _columns(kind)
    vectors = [value] if columns == 1 else [builder.extract_value(value, c) for c in range(columns)]
    return vectors * (count // columns)


def _rows(context: Any, builder: Any, array_type: Any, arguments: Any, span: Any) -> list[Any]:
    """Return where the rows of a tile like ``span`` begin; ``arguments`` begin with array, offset, width."""
    array, offset, width, *_ = arguments
    places = [_address(context, builder, array_type, array, offset)]
    while len(places) < _tile_rows(span):
        places.append(builder.gep(places[-1], [width]))
    return places


def _loaded(context: Any, builder: Any, lanes: LanesType, place: Any, count: int) -> list[Any]:
    """Return the vectors of lanes that begin at an address."""
    first, vectors = builder.bitcast(place, context.get_value_type(lanes).as_pointer()), []
    for c in range(count):
        vectors.append(builder.load(builder.gep(first, [context.get_constant(types.intp, c)])))
        vectors[-1].align = lanes.element.bitwidth // 8
    return vectors


def _store(context: Any, builder: Any, place: Any, vectors: list[Any]) -> None:
    """Write vectors of lanes from an address on."""
    first = builder.bitcast(place, vectors[0].type.as_pointer())
    for c, vector in enumerate(vectors):
        stored = builder.store(vector, builder.gep(first, [context.get_constant(types.intp, c)]))
        stored.align = 4 if isinstance(vector.type.element, ir.FloatType) else 8


def _each(emit: Any, *kinds: Any) -> Any:
    """Return an intrinsic's signature and code: ``emit`` on each vector of lanes, spans or tiles.

    What has fewer vectors is the same in all rows, and lanes in all columns.
    """
    lanes, count = _lanes(kinds[0]), max(_columns(kind) for kind in kinds)
    result = types.UniTuple(lanes, count) if count > 1 else lanes

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(kinds, arguments, strict=True)
        spread = [_spread(builder, kind, value, count) for kind, value in pairs]
        vectors = [emit(builder, lanes, values) for values in zip(*spread, strict=True)]
        return context.make_tuple(builder, result, vectors) if count > 1 else vectors[0]

    return result(*kinds), generate
