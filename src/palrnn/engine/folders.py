"""Which folders and files a command may write to: new ones, empty ones, and those it has marked as its own.

A folder that palrnn writes to holds ``palrnn.json``, which says what kind of folder it is. A folder with
other files in it and no such marker is somebody's, and stays as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from palrnn.engine.checks import as_path
from palrnn.engine.files import write_json
from palrnn.engine.locks import LOCK, folder_lock

MARKER = "palrnn.json"
_FORMAT = 1
# what is in a folder before its marker: a lock, and what a killed `write_atomically` left
_OURS = re.compile(rf"{re.escape(LOCK)}|\..*\.[0-9a-f]{{12}}\.tmp")
# results of 0.1, which knew no marker: the settings of a sweep, and something that it made
_OLD_SWEEP = ("tasks", "records.zip", "summary.json")


@contextmanager
def writable_folder(folder: str | os.PathLike[str], kind: str, what: str) -> Iterator[Path]:
    """Hold ``folder`` as its only writer, marked as one of this ``kind`` ("run", "sweep", ...).

    Refused are a folder of another kind, and one that holds files but no marker. ``what`` tells other
    processes what is being done here. Enter it once all input is checked: the marker is the first thing that
    is written.
    """
    path = check_folder(folder, kind)
    with folder_lock(path, what):
        check_folder(path, kind)  # another process may have been quicker
        if not (path / MARKER).exists():
            write_json(path / MARKER, {"kind": kind, "format": _FORMAT})
        yield path


def check_folder(folder: str | os.PathLike[str], kind: str) -> Path:
    """Return ``folder`` as a path if a command may write a folder of this ``kind`` there; write nothing."""
    path = output_path(folder)
    if path.is_symlink() and not path.exists():
        raise ValueError(f"{path}: a link to nowhere")
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path}: exists and is not a folder")
    there = folder_kind(path)
    if there is not None and there != kind:
        raise ValueError(f"{path}: is the folder of a {there}, not of a {kind}; choose another folder")
    if there is None and path.is_dir():
        others = sorted(entry.name for entry in path.iterdir() if not _OURS.fullmatch(entry.name))
        if MARKER in others:  # another process has marked it since
            return check_folder(path, kind)
        if others:
            shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
            raise ValueError(
                f"{path}: holds files that are not of a {kind} ({shown}); choose a new or an empty folder"
            )
    return path


def output_path(name: str | os.PathLike[str]) -> Path:
    """Return ``name`` as a path; an empty one, which `Path` takes for the current folder, is refused."""
    path = as_path(name, "output")
    if os.fspath(name) == "":
        raise ValueError("output must have a name, got ''; the current folder is '.'")
    return path


def folder_kind(folder: str | os.PathLike[str]) -> str | None:
    """Return the kind of folder that palrnn marked here, or None; a damaged marker is an error."""
    path = as_path(folder, "folder")
    try:
        said = json.loads((path / MARKER).read_bytes()[:10_000])
        kind, version = said["kind"], said["format"]
        if not (isinstance(kind, str) and kind.isidentifier() and isinstance(version, int)):
            raise ValueError("it does not say which")
    except (FileNotFoundError, NotADirectoryError):
        old = (path / "settings.toml").is_file() and any((path / name).exists() for name in _OLD_SWEEP)
        return "sweep" if old else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path / MARKER}: not the marker of a folder of palrnn: {error}") from None
    if version > _FORMAT:
        raise ValueError(f"{path / MARKER}: written by a newer palrnn (format {version})")
    return kind


def check_file(
    path: str | os.PathLike[str],
    mark: bytes | None = None,
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Return ``path`` if a command may write a file there: none is there, or one with ``mark`` near its top.

    With a ``mark`` of None no file may be there. None of the ``inputs`` of the command is ever overwritten.
    """
    file = output_path(path)
    for given in inputs:
        if file.exists() and os.path.exists(given) and os.path.samefile(file, given):
            raise ValueError(f"{file}: is what the command reads; choose another name")
    if not file.exists():
        return file
    if not file.is_file():
        raise ValueError(f"{file}: exists and is not a regular file")
    with file.open("rb") as stream:
        if mark is None or mark not in stream.read(4096):
            raise ValueError(
                f"{file}: exists and is not from this command; choose another name, or remove it"
            )
    return file
