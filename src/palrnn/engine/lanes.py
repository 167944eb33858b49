"""Lanes: short vectors that live in one machine register, for inner loops that no library covers.

A product of a few rows with a small matrix, with something done to each result, is faster as one loop than as
a call to BLAS and a second loop over the result. Compilers do not find that loop by themselves. These words
let a kernel write it down, in terms that every processor has:

    total = fma(load_broadcast(a, i), load(b, j), total)    # 16 float32 multiplications and additions at once

Words on lanes also take eight rows of lanes at once (`eight`, `load_rows`), as many as are kept in registers.
Offsets count elements from the array's beginning; arrays are contiguous; nothing is checked. The number of
lanes depends on the processor (`lane_count`), the result of a loop over them does not. Tiles of sums, which
need more than words, are written with `vector_code`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from palrnn.engine import vector_code
from palrnn.engine.vector_code import REGISTER_BYTES

#: Rows that are worked on at once: as many sums as fit into registers on every processor.
EIGHT = 8


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
def load(typing: Any, array: Any, offset: Any) -> Any:
    """The elements from ``offset`` on, one per lane."""
    lanes = LanesType(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments)
        loaded = builder.load(builder.bitcast(place, context.get_value_type(lanes).as_pointer()))
        loaded.align = lanes.element.bitwidth // 8
        return loaded

    return lanes(array, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, offset: Any, value: Any) -> Any:
    """Write the lanes to the elements from ``offset`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments[:2])
        stored = builder.store(arguments[2], builder.bitcast(place, arguments[2].type.as_pointer()))
        stored.align = value.element.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


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
    return a(a, b), lambda context, builder, signature, arguments: builder.fmul(*arguments)


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
def eight(typing: Any, value: Any) -> Any:
    """Eight rows, all of them ``value``."""
    rows = types.UniTuple(value, EIGHT)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, rows, [arguments[0]] * EIGHT)

    return rows(value), generate


@intrinsic
def load_rows(typing: Any, array: Any, offset: Any, width: Any) -> Any:
    """Eight rows of lanes: the elements from ``offset``, ``offset + width``, ... on."""
    rows = types.UniTuple(LanesType(array.dtype), EIGHT)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = context.get_value_type(rows.dtype).as_pointer()
        loaded = []
        for place in _places(context, builder, signature.args[0], *arguments):
            loaded.append(builder.load(builder.bitcast(place, pointer)))
            loaded[-1].align = array.dtype.bitwidth // 8
        return context.make_tuple(builder, rows, loaded)

    return rows(array, types.intp, types.intp), generate


@intrinsic
def store_rows(typing: Any, array: Any, offset: Any, width: Any, rows: Any) -> Any:
    """Write eight rows of lanes to the elements from ``offset``, ``offset + width``, ... on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = _places(context, builder, signature.args[0], *arguments[:3])
        for r, place in enumerate(places):
            value = builder.extract_value(arguments[3], r)
            stored = builder.store(value, builder.bitcast(place, value.type.as_pointer()))
            stored.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, rows), generate


@intrinsic
def fma_column(typing: Any, array: Any, offset: Any, width: Any, row: Any, sums: Any) -> Any:
    """``sums`` plus ``row`` times the elements at ``offset``, ``offset + width``, ..., one for each sum."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = []
        for r, place in enumerate(_places(context, builder, signature.args[0], *arguments[:3])):
            factor = vector_code.broadcast(builder, context.get_value_type(row), builder.load(place))
            total = builder.extract_value(arguments[4], r)
            values.append(_call(builder, "fma", row, [factor, arguments[3], total]))
        return context.make_tuple(builder, sums, values)

    return sums(array, types.intp, types.intp, row, sums), generate


def _places(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, width: Any) -> list[Any]:
    """Return the addresses of eight elements, ``width`` apart."""
    places = []
    for r in range(EIGHT):
        places.append(_address(context, builder, array_type, array, offset))
        offset = builder.add(offset, width) if r < EIGHT - 1 else offset
    return places


def _each(emit: Any, *kinds: Any) -> Any:
    """Return an intrinsic's signature and code: ``emit`` on lanes, or on each of eight rows of lanes.

    What is not in rows is the same for all of them.
    """
    many = [isinstance(kind, types.UniTuple) for kind in kinds]
    lanes = kinds[0].dtype if many[0] else kinds[0]
    result = types.UniTuple(lanes, EIGHT) if any(many) else lanes

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not any(many):
            return emit(builder, lanes, arguments)
        rows = []
        for r in range(EIGHT):
            pairs = zip(arguments, many, strict=True)
            rows.append(emit(builder, lanes, [builder.extract_value(x, r) if m else x for x, m in pairs]))
        return context.make_tuple(builder, result, rows)

    return result(*kinds), generate
