"""A results folder made small enough to publish, and made whole again.

Trained models go to the zoo ``models.safetensors``; all other results, thousands of small files, to
``records.zip``, the same bytes for the same results. With these two files `palrnn reproduce` continues on
another machine, from a fresh clone, as if the tasks had been done there.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from palrnn.engine.files import write_bytes
from palrnn.experiments.checkpoints import checkpoint_task, invariants_task, regimes
from palrnn.experiments.presets import Preset
from palrnn.experiments.store import Store, line_bytes, read_lines
from palrnn.experiments.studies import study_tasks
from palrnn.experiments.task import Task
from palrnn.experiments.zoo import write_zoo, zoo_checkpoint_bytes, zoo_models
from palrnn.model import checkpoint_from_bytes

_ZOO, _RECORDS = "models.safetensors", "records.zip"
_TIMINGS, _SESSIONS = "timings.jsonl", "sessions.jsonl"
# the zoo holds the first; the second is large, is a table as well, and takes a second to compute
_LEFT_OUT = ("checkpoint", "attractor")


def pack(preset: Preset, store: Store) -> list[Path]:
    """Write the zoo and the records of all finished tasks; return the files."""
    models, figures = {}, {}
    for regime in regimes(preset):
        task = checkpoint_task(preset, regime)
        if store.has(task):
            models[regime.name] = store.read(task)
            measured = invariants_task(preset, task)
            figures[regime.name] = regime._asdict() | (store.result(measured) if store.has(measured) else {})
    if models:
        write_zoo(store.folder / _ZOO, models, figures)
    write_bytes(store.folder / _RECORDS, _zipped(preset, store))
    return [store.folder / name for name in (_ZOO, _RECORDS) if (store.folder / name).is_file()]


def unpack(preset: Preset, store: Store) -> int:
    """Put back the results that the archive holds and the folder lacks; return how many."""
    back = 0
    for task, data in packed(preset, store):
        _put(store.path(task), data)
        back += 1
    if (store.folder / _RECORDS).is_file():
        with zipfile.ZipFile(store.folder / _RECORDS) as records:
            for name in {_TIMINGS, _SESSIONS} & {*records.namelist()}:
                if not (store.folder / name).exists():
                    write_bytes(store.folder / name, records.read(name))
    return back


def packed(preset: Preset, store: Store) -> Iterator[tuple[Task, bytes]]:
    """Yield the tasks, with their results, that the archive holds and the folder lacks."""
    if (store.folder / _ZOO).is_file():
        known = zoo_models(store.folder)
        tasks = {regime.name: checkpoint_task(preset, regime) for regime in regimes(preset)}
        lacking = [name for name, task in tasks.items() if name in known and not store.has(task)]
        for name, data in zoo_checkpoint_bytes(store.folder, *lacking).items():
            if _trained_by(data) == tasks[name].settings:
                yield tasks[name], data
    if (store.folder / _RECORDS).is_file():
        with zipfile.ZipFile(store.folder / _RECORDS) as records:
            names = set(records.namelist())
            for task in study_tasks(preset):
                name = _name(store, store.path(task))
                if name in names and not store.has(task):
                    yield task, records.read(name)


def _zipped(preset: Preset, store: Store) -> bytes:
    paths = {store.path(task) for task in study_tasks(preset) if task.kind.name not in _LEFT_OUT}
    contents = {_name(store, path): path.read_bytes() for path in sorted(paths) if path.is_file()}
    for name, lines in ((_TIMINGS, read_lines(store.folder / _TIMINGS)), (_SESSIONS, store.sessions())):
        contents[name] = b"".join(line_bytes(line) for line in lines)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as records:
        for name, data in contents.items():
            # no date: the same results give the same archive
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            records.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)


def _name(store: Store, path: Path) -> str:
    return path.relative_to(store.folder).as_posix()


def _trained_by(data: bytes) -> dict[str, object]:
    notes = dict(checkpoint_from_bytes(data).training)
    notes.pop("recent_loss", None)
    return notes
