"""Products and copies of arrays for kernels, without what Numba compiles around each of its own.

``np.dot(a, b, out)`` and ``out[:] = a`` compile checks of shapes and the words of their errors, anew for each
kind of array: a tenth of a second for a product, seconds for the first copy. Here nothing is checked.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numba.np.linalg import call_xxgemm, call_xxgemv, ensure_blas


@intrinsic
def product(typing: Any, a: Any, b: Any, out: Any) -> Any:
    """``out = a @ b`` by BLAS: contiguous matrices, transposed or not, one of which may be a vector.

    ``out`` is an array of the right shape, other than ``a`` and ``b``.
    """
    ensure_blas()
    arrays = all(isinstance(x, types.Array) and x.dtype == out.dtype for x in (a, b, out))
    sides = (a.ndim, b.ndim, out.ndim) if arrays else ()
    if sides not in ((2, 2, 2), (2, 1, 1), (1, 2, 1)) or not _contiguous(a, b) or out.layout != "C":
        raise TypingError(f"product takes contiguous matrices of one dtype, got {a}, {b} and {out}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        parts = [
            make_array(kind)(context, builder, value) for kind, value in zip(kinds, arguments, strict=True)
        ]
        shapes = [cgutils.unpack_tuple(builder, part.shape) for part in parts]
        left, right, whole = parts
        size = builder.mul(left.nitems, right.nitems)
        empty = builder.icmp_signed("==", size, context.get_constant(types.intp, 0))
        with builder.if_else(empty, likely=False) as (nothing, something):
            with nothing:
                cgutils.memset(builder, whole.data, builder.mul(whole.itemsize, whole.nitems), 0)
            with something:
                if sides == (2, 2, 2):
                    each = zip(kinds, shapes, (part.data for part in parts), strict=True)
                    call_xxgemm(context, builder, *(x for one in each for x in one))
                elif sides == (2, 1, 1):
                    matrix = a, shapes[0], left.data
                    call_xxgemv(context, builder, a.layout == "C", *matrix, right.data, whole.data)
                else:
                    matrix = b, shapes[1], right.data
                    call_xxgemv(context, builder, b.layout == "F", *matrix, left.data, whole.data)
        return context.get_dummy_value()

    return types.void(a, b, out), generate


@intrinsic
def copy(typing: Any, source: Any, out: Any) -> Any:
    """``out[:] = source``, arrays of one shape that do not overlap."""
    if not isinstance(source, types.Array) or source.ndim != out.ndim:
        raise TypingError(f"copy takes two arrays of as many dimensions, got {source} and {out}")
    whole = source.dtype == out.dtype and source.layout == out.layout and _contiguous(source, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        old, new = (
            make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        if whole:
            cgutils.raw_memcpy(builder, new.data, old.data, old.nitems, old.itemsize)
            return context.get_dummy_value()
        shape = cgutils.unpack_tuple(builder, old.shape)
        with cgutils.loop_nest(builder, shape, shape[0].type) as at:
            value = builder.load(cgutils.get_item_pointer(context, builder, source, old, at))
            value = context.cast(builder, value, source.dtype, out.dtype)
            builder.store(value, cgutils.get_item_pointer(context, builder, out, new, at))
        return context.get_dummy_value()

    return types.void(source, out), generate


@intrinsic
def clear(typing: Any, out: Any) -> Any:
    """``out[:] = 0``, a contiguous array of numbers."""
    if not isinstance(out, types.Array) or not isinstance(out.dtype, types.Number) or not _contiguous(out):
        raise TypingError(f"clear takes a contiguous array of numbers, got {out}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = make_array(out)(context, builder, arguments[0])
        cgutils.memset(builder, whole.data, builder.mul(whole.itemsize, whole.nitems), 0)
        return context.get_dummy_value()

    return types.void(out), generate


def _contiguous(*kinds: Any) -> bool:
    return all(kind.layout in "CF" for kind in kinds)
