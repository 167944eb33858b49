"""Lanes: short vectors that live in one machine register, for inner loops that no library covers.

A product of a few rows with a small matrix, with something done to each result, is faster as one loop than as
a call to BLAS and a second loop over the result. Compilers do not find that loop by themselves. These words
let a kernel write it down, in terms that every processor has:

    total = fma(load_broadcast(a, i), load(b, j), total)    # 16 float32 multiplications and additions at once

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
    return a(a, b), lambda context, builder, signature, arguments: builder.fadd(*arguments)


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
    return a(a, b, c), lambda context, builder, signature, arguments: _call(builder, "fma", a, arguments)


@intrinsic
def maximum(typing: Any, a: Any, low: Any) -> Any:
    """``max(a, low)``; NaN in ``a`` stays NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *arguments), arguments[1], arguments[0])

    return a(a, low), generate


@intrinsic
def where_greater(typing: Any, a: Any, b: Any, value: Any) -> Any:
    """``value`` in the lanes where ``a > b``, else 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        greater = builder.fcmp_ordered(">", *arguments[:2])
        return builder.select(greater, arguments[2], ir.Constant(arguments[2].type, None))

    return a(a, b, value), generate


@intrinsic
def flush_small(typing: Any, a: Any, tiny: Any) -> Any:
    """``a``, with 0 in the lanes where ``|a| < tiny``; NaN stays NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = _call(builder, "fabs", a, arguments[:1])
        small = builder.fcmp_ordered("<", size, arguments[1])
        return builder.select(small, ir.Constant(arguments[0].type, None), arguments[0])

    return a(a, tiny), generate
