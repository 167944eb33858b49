"""A results folder made small enough to publish, and made whole again.

Trained models go to the zoo ``models.safetensors``, all other results to ``records.zip``. With these two
files `palrnn reproduce` continues on another machine as if the tasks had been done there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palrnn.model import checkpoint_from_bytes
from palrnn.paper.models import checkpoint_task, invariants_task
from palrnn.paper.presets import Preset
from palrnn.paper.studies.checkpoints import all_regimes
from palrnn.paper.study import study_tasks
from palrnn.paper.zoo import ZOO, write_zoo, zoo_checkpoint_bytes, zoo_models
from palrnn.sweeps import Store, Task, archive_contents, write_archive
from palrnn.sweeps.archive import restore_times


def archive_results(preset: Preset, store: Store) -> None:
    """Write the zoo and the records of all finished tasks."""
    models, figures = {}, {}
    for regime in all_regimes(preset):
        task = checkpoint_task(preset, regime)
        if store.has(task):
            models[regime.name] = store.read(task)
            figures[regime.name] = regime._asdict() | store.result_or_empty(invariants_task(preset, task))
    if models:
        write_zoo(store.folder / ZOO, models, figures)
    write_archive(store, study_tasks(preset))


def restore_results(preset: Preset, store: Store) -> None:
    """Put back the results that the archive holds and the folder lacks."""
    for task, data in results_in_archive(preset, store):
        store.put(task, data)
    restore_times(store)


def results_in_archive(preset: Preset, store: Store) -> Iterator[tuple[Task, bytes]]:
    """Yield the tasks, with their results, that the archive holds and the folder lacks."""
    if (store.folder / ZOO).is_file():
        known = zoo_models(store.folder)
        tasks = {regime.name: checkpoint_task(preset, regime) for regime in all_regimes(preset)}
        lacking = [name for name, task in tasks.items() if name in known and not store.has(task)]
        for name, data in zoo_checkpoint_bytes(store.folder, *lacking).items():
            if _training_settings(data) == tasks[name].settings:
                yield tasks[name], data
    yield from archive_contents(store, study_tasks(preset))


def _training_settings(data: bytes) -> dict[str, Any]:
    notes = dict(checkpoint_from_bytes(data).training)
    notes.pop("recent_loss", None)
    return notes
