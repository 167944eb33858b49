"""Matrix products for kernels, by BLAS, without what Numba compiles around each of its own."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numba.np.linalg import call_xxgemm, ensure_blas


@intrinsic
def product(typing: Any, a: Any, b: Any, out: Any) -> Any:
    """``out = a @ b`` of contiguous matrices, transposed or not; ``out`` is a matrix of the right shape.

    ``np.dot(a, b, out)`` would compile checks of shapes and their errors for each kind of matrix: a tenth of
    a second each. Here nothing is checked.
    """
    ensure_blas()
    matrices = all(isinstance(x, types.Array) and x.ndim == 2 and x.dtype == out.dtype for x in (a, b, out))
    if not matrices or a.layout not in "CF" or b.layout not in "CF" or out.layout != "C":
        raise TypingError(f"product takes contiguous matrices of one dtype, got {a}, {b} and {out}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts: list[Any] = []
        for kind, value in zip(signature.args, arguments, strict=True):
            array = make_array(kind)(context, builder, value)
            parts += [kind, cgutils.unpack_tuple(builder, array.shape), array.data]
        whole = make_array(out)(context, builder, arguments[2])
        (rows, inner), (_, columns) = parts[1], parts[4]
        size = builder.mul(rows, builder.mul(inner, columns))
        empty = builder.icmp_signed("==", size, context.get_constant(types.intp, 0))
        with builder.if_else(empty, likely=False) as (nothing, something):
            with nothing:
                cgutils.memset(builder, whole.data, builder.mul(whole.itemsize, whole.nitems), 0)
            with something:
                call_xxgemm(context, builder, *parts)
        return context.get_dummy_value()

    return types.void(a, b, out), generate
