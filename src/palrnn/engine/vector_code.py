"""LLVM code by hand, for innermost loops: named arguments, strided views, tiles of sums in registers.

Numba cannot keep an array in registers and must assume that arrays overlap. Where that matters, `emitted`
makes a word for kernels out of a Python function that writes the code for it when a kernel is compiled:

    @emitted
    def scale(code, out, row, factor):                       # arguments by name, arrays as pointers
        product = code.mul(code.load(row), code.broadcast(code.entry(factor, 0)))
        code.store(product, out)

A Python loop in it is unrolled: `VectorCode.accumulate` keeps a tile of sums in registers, and
`VectorCode.for_each_size` writes a version for every size that a tile may have. Vectors are `LANES` float64
numbers, offsets count numbers, arrays are contiguous, nothing is checked.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, register_model

from palrnn.engine.processors import has_wide_registers

#: Bytes of a register: AVX-512 has 64; 32 suits AVX2, and is two registers elsewhere.
REGISTER_BYTES = 64 if has_wide_registers() else 32
#: The float64 numbers of a vector.
LANES = REGISTER_BYTES // 8

_WORD, _VECTOR = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
# a product and a sum become one instruction, rounded once, where the processor has it
_FUSED = ("contract",)

Row = list[Any]


class OperandType(types.Type):
    """The Numba type of pointers and whole numbers that are handed on together, by name.

    An operand owns nothing, so that passing it costs no more than its few numbers: the arrays that it points
    into must stay where they are.
    """

    def __init__(self, name: str, **members: Any) -> None:
        self.members = tuple(members.items())
        super().__init__(name=f"{name}{self.members}")


@register_model(OperandType)
class _OperandModel(models.StructModel):
    def __init__(self, manager: Any, operand: OperandType) -> None:
        super().__init__(manager, operand, list(operand.members))


@infer_getattr
class _OperandMembers(AttributeTemplate):
    key = OperandType

    def generic_resolve(self, value: Any, attr: str) -> Any:
        return dict(value.members).get(attr)


@lower_getattr_generic(OperandType)
def _member(context: Any, builder: Any, kind: OperandType, value: Any, name: str) -> Any:
    return getattr(cgutils.create_struct_proxy(kind)(context, builder, value=value), name)


FLOATS, WHOLES = types.CPointer(types.float64), types.CPointer(types.intp)
VIEW = OperandType("View", base=FLOATS, starts=WHOLES, steps=WHOLES)


@intrinsic
def view(typing: Any, array: Any, offset: Any, layout: Any, first: Any) -> Any:
    """A matrix of vectors in ``array``: (k, v) is at ``offset + starts[first + k] + v * steps[first + k]``.

    ``layout`` is a tuple with the names ``starts`` and ``steps``, two arrays of whole numbers.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder)
        array, offset, layout, first = code.arguments(signature, arguments)
        return code.operand(
            VIEW,
            base=code.at(array, offset),
            starts=code.at(layout.starts, first),
            steps=code.at(layout.steps, first),
        )

    return VIEW(array, types.intp, layout, types.intp), generate


def emitted(write: Callable[..., None]) -> Any:
    """Make a word for kernels of ``write(code, ...)``, which writes its code with a `VectorCode`.

    Arguments have the names that ``write`` gives them: an array is a pointer to its data, a tuple with names
    or an operand has its members as attributes, a number is itself.
    """

    def definition(typing: Any, *kinds: Any) -> Any:
        wholes = (types.Integer, types.Boolean, types.Literal)
        wanted = [types.intp if isinstance(kind, wholes) else kind for kind in kinds]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            code = VectorCode(context, builder)
            write(code, *code.arguments(signature, arguments))
            return context.get_dummy_value()

        return types.void(*wanted), generate

    functools.update_wrapper(definition, write)
    # where Numba looks for the names of the arguments; its own first one takes the place of ``code``
    definition.__signature__ = inspect.signature(write)  # type: ignore[attr-defined]
    return intrinsic(definition)


class VectorCode:
    """Writes LLVM instructions where the compiler stands; vectors are `LANES` float64 numbers."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder
        self.zero = ir.Constant(_VECTOR, [0.0] * LANES)

    def arguments(self, signature: Any, values: Iterable[Any]) -> list[Any]:
        """Return the arguments of an intrinsic in a form that code can use (see `emitted`)."""
        return [self._argument(kind, value) for kind, value in zip(signature.args, values, strict=True)]

    def _argument(self, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Array):
            return self.context.make_array(kind)(self.context, self.builder, value).data
        if isinstance(kind, OperandType):
            return cgutils.create_struct_proxy(kind)(self.context, self.builder, value=value)
        if isinstance(kind, types.BaseNamedTuple):
            named: Any = kind
            parts = [self.builder.extract_value(value, k) for k in range(len(named.fields))]
            members = zip(named.fields, named.types, parts, strict=True)
            return SimpleNamespace(**{name: self._argument(part, inner) for name, part, inner in members})
        return value

    def operand(self, kind: OperandType, **members: Any) -> Any:
        """Return an operand of the given type."""
        made = cgutils.create_struct_proxy(kind)(self.context, self.builder)
        for name, value in members.items():
            setattr(made, name, value)
        return made._getvalue()

    def whole(self, value: Any) -> Any:
        """Return a whole number as code; what is code already stays."""
        return ir.Constant(_WORD, value) if isinstance(value, int) else value

    def product(self, a: Any, b: Any) -> Any:
        """Return the product of two whole numbers."""
        return self.builder.mul(self.whole(a), self.whole(b))

    def at(self, pointer: Any, offset: Any) -> Any:
        """Return the pointer to the number at ``offset``."""
        return self.builder.gep(pointer, [self.whole(offset)])

    def entry(self, pointer: Any, offset: Any) -> Any:
        """Return the number at ``offset``."""
        return self.builder.load(self.at(pointer, offset))

    def load(self, pointer: Any) -> Any:
        """Return the vector that starts at ``pointer``."""
        return self.builder.load(self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def store(self, vector: Any, pointer: Any) -> None:
        """Write a vector to where ``pointer`` is."""
        self.builder.store(vector, self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def load_row(self, pointer: Any, step: Any, count: int) -> Row:
        """Return ``count`` vectors, each ``step`` numbers after the one before."""
        return [self.load(self.at(pointer, self.product(step, v))) for v in range(count)]

    def store_row(self, row: Row, pointer: Any, step: Any) -> None:
        """Write vectors, each ``step`` numbers after the one before."""
        for v, vector in enumerate(row):
            self.store(vector, self.at(pointer, self.product(step, v)))

    def broadcast(self, number: Any) -> Any:
        """Return a vector with ``number`` in every lane."""
        return broadcast(self.builder, _VECTOR, number)

    def mul(self, a: Any, b: Any) -> Any:
        """Return a * b."""
        return self.builder.fmul(a, b)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """Return a * b + c."""
        return self.builder.fadd(self.builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)

    def subtract_product(self, c: Any, a: Any, b: Any) -> Any:
        """Return c - a * b."""
        return self.builder.fsub(c, self.builder.fmul(a, b, flags=_FUSED), flags=_FUSED)

    def positive(self, vector: Any) -> Any:
        """Return which lanes are greater than 0."""
        return self.builder.fcmp_ordered(">", vector, self.zero)

    def select(self, mask: Any, a: Any, b: Any) -> Any:
        """Return a in the lanes of ``mask``, b in the others."""
        return self.builder.select(mask, a, b)

    def accumulate(
        self, sums: list[Row], count: Any, term: Callable[[Any, list[Row]], list[Row]]
    ) -> list[Row]:
        """Return ``sums``, rows of vectors, after ``count`` rounds of ``sums = term(k, sums)``."""
        builder, before = self.builder, self.builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(_WORD)
        running = [[builder.phi(_VECTOR) for _ in row] for row in sums]
        builder.cbranch(builder.icmp_signed("<", k, count), body, after)
        builder.position_at_end(body)
        new = term(k, running)
        k.add_incoming(self.whole(0), before)
        k.add_incoming(builder.add(k, self.whole(1)), body)
        builder.branch(head)
        for phis, starts, ends in zip(running, sums, new, strict=True):
            for phi, start, end in zip(phis, starts, ends, strict=True):
                phi.add_incoming(start, before)
                phi.add_incoming(end, body)
        builder.position_at_end(after)
        return running

    def for_each_size(
        self, rows: Any, columns: Any, most_rows: Iterable[int], write: Callable[[int, int], None]
    ) -> None:
        """Branch to the code that ``write(rows, columns)`` makes for a tile's size, known when it runs.

        ``most_rows`` gives the most rows of a tile for 1, 2, ... columns.
        """
        builder = self.builder
        end = builder.append_basic_block("end")
        sizes = builder.switch(builder.add(self.product(rows, 16), columns), end)
        for c, most in enumerate(most_rows, start=1):
            for r in range(1, most + 1):
                block = builder.append_basic_block(f"tile_{r}_{c}")
                sizes.add_case(self.whole(16 * r + c), block)
                builder.position_at_end(block)
                write(r, c)
                builder.branch(end)
        builder.position_at_end(end)

    def if_positive(self, number: Any) -> Any:
        """Return a context for two branches, ``with code.if_positive(n) as (then, otherwise)``."""
        return self.builder.if_else(self.builder.icmp_signed(">", number, self.whole(0)))


def broadcast(builder: Any, vector: Any, number: Any) -> Any:
    """Return ``number`` in every lane of a vector of the given LLVM type."""
    nothing, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(builder.insert_element(nothing, number, first), nothing, lanes)
