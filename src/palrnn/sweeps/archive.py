"""All results of a sweep in one file: thousands of small results as ``records.zip``.

The same results give the same bytes. With this file a sweep continues on another machine, from a fresh clone,
as if the tasks had been done there. Kinds with ``archived=False`` are left out.

An archive may come from somebody else. Its entries are asked for by the names of the tasks, so what it calls
them never becomes a path, and an entry that would take more than `MOST_BYTES` is refused.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from palrnn.engine.files import write_bytes
from palrnn.sweeps.store import SESSIONS, TIMINGS, Store, line_bytes
from palrnn.sweeps.task import Task

RECORDS = "records.zip"
#: Results are small: those of the paper's 1,741 tasks have at most 10 kB, their times together 0.2 MB.
MOST_BYTES = 100_000_000


def write_archive(store: Store, tasks: Iterable[Task]) -> None:
    """Write the results of the finished tasks, and the times that they took, to the archive."""
    names = sorted({store.name(task) for task in tasks if task.kind.archived and store.has(task)})
    contents = {name: (store.folder / name).read_bytes() for name in names}
    contents[TIMINGS] = b"".join(line_bytes(line) for line in store.timing_lines())
    contents[SESSIONS] = b"".join(line_bytes(line) for line in store.sessions())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as records:
        for name, data in contents.items():
            # no date: the same results give the same archive
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            records.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    write_bytes(store.folder / RECORDS, buffer.getvalue())


def archive_contents(store: Store, tasks: Iterable[Task]) -> Iterator[tuple[Task, bytes]]:
    """Yield the tasks, with their results, that the archive holds and the folder lacks."""
    with _entries(store) as entries:
        for task in tasks:
            if store.name(task) in entries and not store.has(task):
                data = entries[store.name(task)]()
                if task.kind.suffix == ".json" and not _is_result(data, task):
                    raise ValueError(f"{store.name(task)} is not the result of its task")
                yield task, data


def restore_times(store: Store) -> None:
    """Put back what the archive knows of the times that tasks and runs took, where the folder has nothing."""
    with _entries(store) as entries:
        for name in (TIMINGS, SESSIONS):
            if name in entries and not (store.folder / name).exists():
                write_bytes(store.folder / name, entries[name]())


def _is_result(data: bytes, task: Task) -> bool:
    try:
        return bool(json.loads(data) == task.identity | {"result": json.loads(data)["result"]})
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


@contextmanager
def _entries(store: Store) -> Iterator[dict[str, Callable[[], bytes]]]:
    """The entries of the archive by name, each to be called for its content; none without an archive."""
    path = store.folder / RECORDS
    if not path.is_file():
        yield {}
        return
    try:
        with zipfile.ZipFile(path) as file:
            yield {entry.filename: partial(_content, file, entry) for entry in file.infolist()}
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, NotImplementedError, EOFError) as error:
        raise ValueError(f"{path}: not an archive of results, or damaged: {error}") from None


def _content(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.file_size > MOST_BYTES:
        raise ValueError(f"{entry.filename} claims {entry.file_size:,} bytes")
    return file.read(entry)
