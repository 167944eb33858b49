"""Compiled kernels that depend on their source and the processor, and on nothing that happened before.

Numba puts a copy of every function that a kernel calls into the kernel's own code, under the name of the
original, and optimises it there once more. Which of the copies runs is decided by name, and the first one
that a process happens to load wins: a kernel just compiled runs with the original, one loaded from the cache
with its own copy, and the two may round differently. Here the copies get names of their own, so that a kernel
always runs with its own. It is also compiled from what the cache would hold of the functions that it calls,
whether or not they come from there.

Numba would also make machine code of each function that a kernel calls, with two ways to call it from
outside, and optimise it alone, only to do all of that again for every caller. What kernels call is kept here
as a `PartLibrary`: code to be copied, optimised once, in the kernel that people call.
"""

from __future__ import annotations

import hashlib
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import AnnotateTypes, InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import (
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineInlinables,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    WithLifting,
)

#: What kernels have no use for: closures, context managers, calls that Numba is told to inline, literals, and
#: expressions of whole arrays made into one loop. Each costs a look at the whole function, and Numba's own
#: account of it; code that needs one does not compile, but for such expressions: each operation has a loop.
_LEFT_OUT = {
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineInlinables,
    InlineOverloads,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    NopythonRewrites,
    WithLifting,
}


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
        codegen: Any = self._codegen
        for variable in self._final_module.global_variables:
            # what Numba knows of each function besides its code; parts leave it to the kernels that copy them
            known = lookup_environment(variable.name) if variable.name.startswith("_ZN08NumbaEnv") else None
            if known is not None:
                codegen.set_env(variable.name, known)

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            # through bytes and back, as from the cache: the order in which LLVM sees things is then the same
            self._shared_module = llvm.parse_bitcode(super()._get_module_for_linking().as_bitcode())
        return self._shared_module


class PartLibrary(OwnLibrary):
    """The code of a function that kernels call: to be copied into them, never run by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return what `restored` takes: there is no object code, so that it is the code to be copied."""
        self._ensure_finalized()
        return self.name, "part", self._get_module_for_linking().as_bitcode()

    @classmethod
    def restored(cls, codegen: Any, data: Any) -> Any:
        """Return the library whose `serialize_using_object_code` gave ``data``."""
        name, _, bitcode = data
        library = cls(codegen, name)
        library._final_module = library._shared_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


def entry_of_part(name: str) -> Any:
    """Return an object that stands for a function that only kernels call; each one is different.

    Numba looks code up by it, and wants a built-in function.
    """
    return [f"{name} is called by kernels only"].copy


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseOwnLibrary(AnalysisPass):
    _name = "palrnn_own_library"
    _library: type[OwnLibrary] = OwnLibrary

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _UsePartLibrary(_UseOwnLibrary):
    _name = "palrnn_part_library"
    _library = PartLibrary

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        return super().run_pass(state)


@register_pass(mutates_CFG=False, analysis_only=True)
class _EnterPart(AnalysisPass):
    _name = "palrnn_enter_part"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.cr = state.cr._replace(cfunc=entry_of_part(state.func_id.func_qualname))
        state.targetctx.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
        return False


class KernelCompiler(Compiler):
    """Numba's compiler, with `OwnLibrary` as the place for its code."""

    _library_pass: type[AnalysisPass] = _UseOwnLibrary

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes without those in `_LEFT_OUT`, and with one more before code is made."""
        pipelines: list[Any] = super().define_pipelines()
        for passes in pipelines:
            passes.passes = [each for each in passes.passes if each[0] not in _LEFT_OUT]
            passes.add_pass_after(self._library_pass, AnnotateTypes)
            passes.finalize()
        return pipelines


class PartCompiler(KernelCompiler):
    """Numba's compiler for functions that kernels call, with `PartLibrary` as the place for their code."""

    _library_pass = _UsePartLibrary

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a kernel, with one more that keeps the code from being run."""
        pipelines = super().define_pipelines()
        for passes in pipelines:
            passes.add_pass_after(_EnterPart, NativeLowering)
            passes.finalize()
        return pipelines
