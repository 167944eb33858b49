"""Readers of series files by suffix. A reader is one file in this folder, registered by ``@reader``.

    read(file, wanted) -> Table

reads the columns that `choose` picks, under the names that it gives them, as float64 with NaN where a value
is missing, and refuses by a `SeriesError` what is no numbers; it takes no more memory than `MOST_VALUES`
numbers and a buffer, whatever the file claims, and runs no code from it. Whatever else goes wrong in it
becomes a `SeriesError` here.
``tests/contracts/test_reader.py`` is what every reader must pass.

A file of several arrays is asked for one of them by ``recording.mat::lfp``; the reader finds that name in
``wanted.array``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from palrnn.data.table import SeriesError, Table, Wanted, refuse_falling, without_counters
from palrnn.engine.checks import as_path, first_line

Read = Callable[[Path, Wanted], Table]
R = TypeVar("R", bound=Read)


class Reader(NamedTuple):
    """A way to read files: the function; whether their columns, or arrays, have names to ask for."""

    read: Read
    named: bool
    arrays: bool


_READERS: dict[str, Reader] = {}


def reader(suffix: str, *, named: bool = True, arrays: bool = False) -> Callable[[R], R]:
    """Register the function below for files that end in ``suffix``.

    ``named``: their columns have names. ``arrays``: they hold arrays that have names.
    """

    def register(read: R) -> R:
        if suffix in _READERS:
            raise ValueError(
                f"reader {suffix!r} is registered already, by {_READERS[suffix].read.__module__}"
            )
        _READERS[suffix] = Reader(read, named, arrays)
        return read

    return register


def known_suffixes() -> tuple[str, ...]:
    """Return the suffixes of files that can be read, sorted."""
    return tuple(sorted(_READERS))


def named_array(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Return the file, and the array in it that ``recording.mat::lfp`` asks for (None: a plain path)."""
    file = as_path(path)
    # before it is a path: a path of Windows would turn the / in the name of an array round
    text, at = path if isinstance(path, str) else file.as_posix(), -1
    while (at := text.find("::", at + 1)) >= 0:
        if Path(text[:at]).suffix.lower() in _READERS:
            return Path(text[:at]), text[at + 2 :]
    return file, None


def reader_of(path: str | os.PathLike[str]) -> tuple[Path, Reader]:
    """Return the file and its reader; refuse what is no file, or of an unknown type."""
    file, array = named_array(path)
    suffix = file.suffix.lower()
    if suffix not in _READERS:
        kinds = ", ".join(known_suffixes())
        raise SeriesError(f"{file}: unknown type {suffix or '(none)'}, expected one of {kinds}")
    if array is not None and not _READERS[suffix].arrays:
        kinds = ", ".join(kind for kind in known_suffixes() if _READERS[kind].arrays)
        raise SeriesError(f"{file}: ::{array} asks for an array by name, which is for {kinds} only")
    try:
        if not file.is_file():
            linked = "is a link that leads nowhere" if file.is_symlink() else "no such file"
            raise SeriesError(f"{file}: {'is not a file' if file.exists() else linked}")
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise SeriesError(f"{file}: {error.strerror}") from None
    return file, _READERS[suffix]


def read_table(path: str | os.PathLike[str], wanted: Wanted) -> Table:
    """Return the observations in ``path``; a column that only counts is left out, unless it is asked for."""
    file, (read, named, _) = reader_of(path)
    wanted = wanted._replace(array=named_array(path)[1])
    if wanted.columns is not None and not named:
        kinds = ", ".join(suffix for suffix in known_suffixes() if _READERS[suffix].named)
        raise SeriesError(f"{file}: columns can be named for {kinds} only")
    try:
        table = read(file, wanted)
    except SeriesError:
        raise
    except Exception as error:  # whatever a damaged file makes a parser say becomes one sentence
        words = f"{file}: cannot be read as {file.suffix.lower()}: {first_line(error)}"
        raise SeriesError(words) from error
    refuse_falling(table, asked=wanted.time is not None)
    return without_counters(table) if wanted.columns is None and named else table
