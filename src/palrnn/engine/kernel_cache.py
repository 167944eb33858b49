"""Where compiled kernels are kept between processes.

One file for each kernel, signature and kind of processor, with a digest of itself and of the sources that it
was made from. A file that is damaged, or made from other sources, is as good as none: the kernel is compiled
again and the file replaced. The places, in order: ``NUMBA_CACHE_DIR``, ``__pycache__`` beside the source,
the user's cache folder, a private folder for temporary files. A file is read from wherever it is, and written
to the first place that takes it. If none does, kernels stay in memory, and one warning says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.compiler import CompileResult, compile_result
from numba.core.serialize import dumps

from palrnn.engine import processors
from palrnn.engine.kernel_library import PartLibrary, entry_of_part

_settings: Any = config  # its attributes are made at run time
_DIGEST = hashlib.sha256
_SIZE = _DIGEST().digest_size

_refused: set[Path] = set()
_warned = threading.Event()


class KernelCache:
    """The cache of one kernel, with the methods that Numba calls; ``stamp()`` stands for its sources.

    That is asked when a file is wanted, so that importing a module does not read sources.
    """

    def __init__(self, function: Callable[..., Any], stamp: Callable[[], str]) -> None:
        code = function.__code__
        self._source = Path(code.co_filename)
        self._base = f"{self._source.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._function, self._stamp = function, stamp
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """Where a file of this kernel would be written now; empty if nowhere."""
        return next((str(folder) for folder in self._folders() if folder not in _refused), "")

    def enable(self) -> None:
        """Read and write files."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write files."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all files of this kernel that can be removed."""
        for folder in self._folders():
            for file in folder.glob(f"{self._base}.*.kernel"):
                with contextlib.suppress(OSError):
                    file.unlink()

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled kernel for ``signature`` if a whole file of it is somewhere, or None."""
        if not self._enabled:
            return None
        context.refresh()  # Numba's caches begin with this: it makes the context know its built-in functions
        name, key = self._file_name(signature, context.codegen())
        for folder in self._folders():
            with contextlib.suppress(Exception):  # whatever is wrong with a file, compiling is right
                data = (folder / name).read_bytes()
                digest, body = data[:_SIZE], data[_SIZE:]
                if digest == _DIGEST(key + body).digest():
                    return self._rebuilt(context, pickle.loads(body))
        return None

    def _rebuilt(self, context: Any, parts: Any) -> Any:
        return CompileResult._rebuild(context, *parts)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled kernel in the first place that takes it."""
        dynamic = compiled.library.has_dynamic_globals or any(not part.can_cache for part in compiled.lifted)
        if not self._enabled or dynamic:
            return
        name, key = self._file_name(signature, compiled.codegen)
        body = dumps(compiled._reduce())
        data, troubles = _DIGEST(key + body).digest() + body, []
        for folder in self._folders():
            if folder not in _refused:
                try:
                    _write(folder, name, data)
                    return
                except OSError as error:
                    _refused.add(folder)
                    troubles.append(f"{folder}: {error.strerror or error}")
        if not _warned.is_set():
            _warned.set()
            reasons = "; ".join(troubles)
            warnings.warn(
                f"compiled kernels cannot be kept, so that every process compiles its own ({reasons}); "
                "set NUMBA_CACHE_DIR to a folder with room",
                RuntimeWarning,
                stacklevel=2,
            )

    def _file_name(self, signature: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the name of the file, and what it must have been made from."""
        # the width of registers is written into kernels as constants, which Numba does not know of
        width, checked = processors.has_wide_registers(), bool(_settings.BOUNDSCHECK)
        target = repr((str(signature), codegen.magic_tuple(), width, checked, self._cells))
        versions = (numba.__version__, llvmlite.__version__, sys.version, self._stamp())
        short = _DIGEST(target.encode()).hexdigest()[:16]
        key = (*versions, self._function.__code__.co_code, target)
        return f"{self._base}.{sys.implementation.cache_tag}-{short}.kernel", repr(key).encode()

    @cached_property
    def _cells(self) -> bytes:
        return dumps(tuple(cell.cell_contents for cell in self._function.__closure__ or ()))

    def _folders(self) -> Iterator[Path]:
        return iter(_folders(self._source.parent, _settings.CACHE_DIR))


class PartCache(KernelCache):
    """The cache of a function as kernels copy it (`kernel_library.PartLibrary`)."""

    def __init__(self, function: Callable[..., Any], stamp: Callable[[], str]) -> None:
        super().__init__(function, stamp)
        self._base += ".part"

    def _rebuilt(self, context: Any, parts: Any) -> Any:
        data, described, environment, signature, objectmode, lifted, annotation, init, known = parts
        for function in init:
            function()
        return compile_result(
            typing_context=context.typing_context,
            target_context=context,
            entry_point=entry_of_part(described.qualname),
            type_annotation=annotation,
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            fndesc=described,
            library=PartLibrary.restored(context.codegen(), data),
            environment=environment,
            reload_init=init,
            referenced_envs=known,
        )


@cache
def _folders(source: Path, told: str) -> tuple[Path, ...]:
    """Return the places for kernels of the sources in a folder."""
    inner = f"{source.name}-{_DIGEST(os.fsencode(source)).hexdigest()[:16]}"
    places = [Path(told) / inner] if told else []
    places.append(source / "__pycache__")
    with contextlib.suppress(RuntimeError):  # a user without a home
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        places.append(Path(home) / "palrnn" / inner)
    with contextlib.suppress(OSError):  # no folder for temporary files at all
        places.append(_private(Path(tempfile.gettempdir())) / inner)
    return tuple(places)


def _private(temporary: Path) -> Path:
    """Return our folder among everybody's: what is in there is run, so that nobody else may write to it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = temporary / f"palrnn-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = folder.lstat()
    mine = stat.S_ISDIR(about.st_mode) and about.st_uid == user and not about.st_mode & 0o077
    if os.name == "posix" and not mine:
        raise PermissionError(f"{folder}: is not private")
    return folder


def _write(folder: Path, name: str, data: bytes) -> None:
    """Write a file whole or not at all; the digest tells should the machine lose power."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{name[:40]}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, folder / name)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
