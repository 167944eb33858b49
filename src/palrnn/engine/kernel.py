"""The one way in which palrnn compiles numerical kernels.

A kernel is a small function on plain arrays, compiled by Numba, that releases the GIL and is cached on disk.
The floating-point flags allow vectorised sums and fused multiply-adds. They do *not* assume the absence of
NaN and infinity (as ``fastmath=True`` would), because kernels must be able to notice divergence.

Numba renews a cached kernel when its own file changes, but not when a kernel that it calls changes in another
file: after an upgrade the old arithmetic would live on. The cache here (`kernel_cache`) also knows the files
that a kernel's module imports, directly or not. What a compiled kernel computes depends on its source and on
the processor, not on who compiled it (`kernel_library`).
"""

from __future__ import annotations

import gc
import hashlib
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event
from numba.core.types import unliteral
from threadpoolctl import ThreadpoolController

from palrnn.engine import compile_time
from palrnn.engine.kernel_cache import KernelCache, PartCache
from palrnn.engine.kernel_library import KernelCompiler, PartCompiler

F = TypeVar("F", bound=Callable[..., Any])

#: Statements of imports; parsing all files would take a quarter of a second. What looks like one in a
#: docstring only makes a kernel depend on more than it must.
_IMPORT = re.compile(r"^\s*import +([\w., ]+)", re.MULTILINE)
_FROM_IMPORT = re.compile(r"^\s*from +([\w.]+) +import +(\([^)]*\)|.*)", re.MULTILINE)
_NAME, _COMMENT = re.compile(r"\w+"), re.compile(r"#.*")

_njit: Any = njit  # its type does not know all of its options
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
}


def kernel(function: F) -> F:
    """Compile ``function`` on first use: cached on disk, without the GIL, honest about NaN."""
    return _compiled(function, no_cfunc_wrapper=True)


def addressable(function: F) -> F:
    """Compile ``function`` like `kernel`, such that its address can be an argument of kernels."""
    return _compiled(function)


def _compiled(function: F, **options: bool) -> F:
    compiled: Any = _njit(**_OPTIONS, **options, pipeline_class=KernelCompiler)(function)
    if not hasattr(compiled, "_cache"):  # with NUMBA_DISABLE_JIT it is the function itself
        return cast(F, compiled)
    stamp = partial(source_stamp, function.__module__)
    compiled._cache = KernelCache(function, stamp)

    @cache
    def part() -> Any:
        bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        copied: Any = _njit(**_OPTIONS, **bare, pipeline_class=PartCompiler)(function)
        copied._cache = PartCache(function, stamp)
        return copied

    # other kernels that call it copy its code: they are told of another face of it, made when first wanted;
    # once for all constants that it is called with, which Numba would compile it for one by one
    compiled.get_call_template = lambda types, named: part().get_call_template(
        tuple(unliteral(each) for each in types), {name: unliteral(each) for name, each in named.items()}
    )
    compiled.get_overload = lambda signature: part().get_overload(signature)
    return cast(F, compiled)


@cache
def source_stamp(module: str) -> str:
    """Return a digest of the source of ``module`` and of what it imports from its own package."""
    package = module.partition(".")[0]
    seen: set[str] = set()
    waiting, digest = [module], hashlib.sha256()
    while waiting:
        name = waiting.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in seen or name.partition(".")[0] != package or file is None:
            continue
        seen.add(name)
        source = Path(file).read_bytes()
        digest.update(name.encode() + b"\0" + source)
        waiting.extend(sorted(_imported(source)))
    return digest.hexdigest()


def _imported(source: bytes) -> set[str]:
    names: set[str] = set()
    for module, parts in _import_statements(source):
        inside = {f"{module}.{part}" for part in parts}
        # `from room import kernels` means the module; what its package imports besides is none of ours
        names |= (inside & sys.modules.keys()) or {module}
    return names


@cache
def _import_statements(source: bytes) -> list[tuple[str, tuple[str, ...]]]:
    """Return the modules that a source imports, each with the names that it takes from it."""
    text = _COMMENT.sub("", source.decode("utf-8", "replace")).replace("\\\n", " ")
    named = [name.split() for line in _IMPORT.findall(text) for name in line.split(",")]
    found: list[tuple[str, tuple[str, ...]]] = [(words[0], ()) for words in named if words]
    return found + [(module, tuple(_NAME.findall(names))) for module, names in _FROM_IMPORT.findall(text)]


_pinned = threading.Event()


def pin_blas() -> None:
    """Give BLAS one thread in this process: the parallel axis is models and windows, not matrix rows.

    Called by every API function that runs kernels with matrix products; cheap after the first call.
    """
    if not _pinned.is_set():
        # compiled products run on SciPy's BLAS, not NumPy's; a library can be pinned only once it is loaded
        import scipy.linalg.cython_blas  # noqa: F401

        ThreadpoolController().limit(limits=1, user_api="blas")
        _pinned.set()


def on_compile(say: Callable[[], None]) -> None:
    """Call ``say`` once, as soon as some kernel has to be compiled; never, if all are cached.

    Only the latest ``say`` is kept.
    """
    _listener.say = say


class _Compilation(event.Listener):
    """Says so once, and counts the time; Numba compiles in one thread at a time, callers around callees."""

    def __init__(self) -> None:
        self.say: Callable[[], None] | None = None
        self._depth, self._begun, self._collects = 0, 0.0, False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._begun, self._collects = time.monotonic(), gc.isenabled()
            # the compiler makes many small objects that live as long as it works: looking through them again
            # and again is a tenth of its time
            gc.disable()
        self._depth += 1
        say, self.say = self.say, None
        if say is not None:
            say()

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            if self._collects:
                gc.enable()
            compile_time.add(time.monotonic() - self._begun)


_listener = _Compilation()
event.register("numba:compile", _listener)
