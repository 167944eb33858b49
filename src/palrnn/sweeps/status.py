"""What is done, running and failed in a results folder."""

from __future__ import annotations

import os
from typing import Any

from palrnn.engine.processors import available_processors
from palrnn.experiments.archive import packed
from palrnn.experiments.presets import preset_in
from palrnn.experiments.store import Store
from palrnn.experiments.studies import study_tasks


def sweep_status(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return counts by kind, the last sign of life, the failures, and the seconds left (None: unknown).

    All studies of the folder's preset count, whether or not they were asked for yet. Results that are in the
    archive only, as in a fresh clone, count as done.
    """
    preset, store = preset_in(folder), Store(folder)
    tasks, run = study_tasks(preset), store.run()
    archived = {task for task, _ in packed(preset, store)}
    kinds: dict[str, dict[str, int]] = {}
    failed = []
    for task in tasks:
        counts = kinds.setdefault(task.kind.name, {"done": 0, "failed": 0, "total": 0})
        counts["total"] += 1
        if store.has(task) or task in archived:
            counts["done"] += 1
        elif (traceback := store.failure(task)) is not None:
            counts["failed"] += 1
            error = traceback.strip().splitlines()[-1]
            failed.append({"kind": task.kind.name, "label": task.label, "hash": task.hash, "error": error})
    workers = run.get("workers") or available_processors()
    return {
        "scale": preset.scale,
        "done": sum(counts["done"] for counts in kinds.values()),
        "total": len(tasks),
        "kinds": kinds,
        "alive": store.alive(),
        "run": run,
        "workers": workers,
        "failed": failed,
        "seconds_left": store.seconds_left([task for task in tasks if task not in archived], workers),
    }
