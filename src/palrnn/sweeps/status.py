"""What is done, running and failed in the folder of a sweep."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from palrnn.engine.processors import available_processors
from palrnn.sweeps.store import Store
from palrnn.sweeps.task import Task
from palrnn.sweeps.timings import seconds_left


def sweep_status(store: Store, tasks: Sequence[Task], archived: Collection[Task] = ()) -> dict[str, Any]:
    """Return counts by kind, the last sign of life, the failures, and the seconds left (None: unknown).

    Results that are in an archive only (``archived``), as in a fresh clone, count as done.
    """
    run = store.run()
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
        "done": sum(counts["done"] for counts in kinds.values()),
        "total": len(tasks),
        "kinds": kinds,
        "alive": store.alive(),
        "run": run,
        "workers": workers,
        "failed": failed,
        "seconds_left": seconds_left(store, (task for task in tasks if task not in archived), workers),
    }
