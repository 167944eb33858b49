"""Vector fields and their Jacobians as arguments of kernels.

A compiled function that is handed to a kernel as it is would be compiled into it, anew in every process. By
its address the kernel is compiled once, for any function of that signature, and is cached (Numba's
``WrapperAddressProtocol``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.experimental.function_type  # noqa: F401  (teaches Numba to take addresses as arguments)
from numba import njit, types

from palrnn.engine.checks import Floats
from palrnn.engine.kernel import addressable

_VECTOR, _MATRIX = types.float64[::1], types.float64[:, ::1]


class KernelArgument(types.WrapperAddressProtocol):
    """A compiled function that can be called, and handed to kernels that call it."""

    def __init__(self, function: Callable[..., None], signature: Any) -> None:
        # a function of somebody else, perhaps typed into a notebook, has no place on disk to be cached
        ours = function.__module__.partition(".")[0] == "palrnn"
        self._compiled: Any = (addressable if ours else njit(nogil=True, error_model="numpy"))(function)
        self._signature = signature
        self.__module__, self._name = function.__module__, function.__qualname__

    def __call__(self, *arguments: Any) -> None:
        """Call the function from Python."""
        self._compiled(*arguments)

    def __wrapper_address__(self) -> int:
        self._compiled.compile(self._signature.args)
        found = self._compiled.get_compile_result(self._signature)
        return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))

    def signature(self) -> Any:
        """The types of the arguments, by which Numba knows the function."""
        return self._signature

    def __reduce__(self) -> str:
        return self._name  # pickled by name, as functions are

    def __repr__(self) -> str:
        return f"{self.__module__}.{self._name}"


def vector_field(function: Callable[[Floats, Floats, Floats], None]) -> KernelArgument:
    """Compile ``function(z, p, out)``: dz/dt at ``z (D,)`` with parameters ``p`` goes into ``out (D,)``."""
    return KernelArgument(function, types.void(_VECTOR, _VECTOR, _VECTOR))


def field_jacobian(function: Callable[[Floats, Floats, Floats], None]) -> KernelArgument:
    """Compile ``function(z, p, out)``: d(dz/dt)/dz at ``z (D,)`` goes into ``out (D, D)``."""
    return KernelArgument(function, types.void(_VECTOR, _VECTOR, _MATRIX))
