"""Compiled kernels that depend on their source and the processor, and on nothing that happened before.

Numba puts a copy of every function that a kernel calls into the kernel's own code, under the name of the
original, and optimises it there once more. Which of the copies runs is decided by name, and the first one
that a process happens to load wins: a kernel just compiled runs with the original, one loaded from the cache
with its own copy, and the two may round differently. Here the copies get names of their own, so that a kernel
always runs with its own. It is also compiled from what the cache would hold of the functions that it calls,
whether or not they come from there.
"""

from __future__ import annotations

import hashlib
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import AnnotateTypes


class OwnLibrary(JITCodeLibrary):
    """The code of one kernel, with copies of all that it calls under names of its own."""

    def _finalize_final_module(self) -> None:
        functions = [part for part in self._final_module.functions if not part.is_declaration]
        own = [part.name for part in functions if part.linkage == llvm.Linkage.external]
        mark = hashlib.sha256("".join(sorted(own)).encode()).hexdigest()[:16]
        for part in functions:
            # Numba's compiled functions; what it knows by other names (reference counts) it looks up by name
            if part.linkage == llvm.Linkage.linkonce_odr and part.name.startswith("_ZN"):
                part.name = f"{part.name}.{mark}"
        super()._finalize_final_module()

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            # through bytes and back, as from the cache: the order in which LLVM sees things is then the same
            self._shared_module = llvm.parse_bitcode(super()._get_module_for_linking().as_bitcode())
        return self._shared_module


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseOwnLibrary(AnalysisPass):
    _name = "palrnn_own_library"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = OwnLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class KernelCompiler(Compiler):
    """Numba's compiler, with `OwnLibrary` as the place for its code."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes, with one more before code is made."""
        pipelines: list[Any] = super().define_pipelines()
        for passes in pipelines:
            passes.add_pass_after(_UseOwnLibrary, AnnotateTypes)
            passes.finalize()
        return pipelines
