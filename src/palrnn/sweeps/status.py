"""What is done, running and failed in the folder of a sweep, what it took, and what the rest will take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from palrnn.engine.processors import available_processors
from palrnn.sweeps.store import Store
from palrnn.sweeps.task import Task


def seconds_left(store: Store, tasks: Iterable[Task], workers: int = 1) -> float | None:
    """Return the expected time for these tasks, from the pace of their kinds so far; None without a pace."""
    timings = store.timings()
    spent: dict[str, tuple[float, float]] = {}
    left: dict[str, float] = {}
    for task in set(tasks):
        kind = task.kind.name
        if not store.has(task):
            left[kind] = left.get(kind, 0.0) + task.cost
        elif task.hash in timings:
            seconds, cost = spent.get(kind, (0.0, 0.0))
            spent[kind] = seconds + timings[task.hash]["seconds"], cost + task.cost
    if any(kind not in spent for kind in left):
        return None
    total = sum(cost * spent[kind][0] / spent[kind][1] for kind, cost in left.items())
    return total / max(1, workers)


def computation_rows(store: Store, parts: Mapping[str, Iterable[Task]]) -> list[dict[str, Any]]:
    """Return tasks and seconds by part of the work, kind and machine, and the wall time of all runs here.

    A task of several parts counts with the first. ``processor`` is the time of the cores, of those tasks
    (their number is ``timed``) whose worker has told it. A wall time is of one purpose, engine and machine;
    the part is the purpose, and both are empty for runs from before they were kept.
    """
    timings = store.timings()
    spent: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    seen: set[Task] = set()
    for part, tasks in parts.items():
        for task in tasks:
            if task not in seen and task.hash in timings and store.has(task):
                note = timings[task.hash]
                spent.setdefault((part, task.kind.name, note["machine"]), []).append(note)
            seen.add(task)
    by_engine: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in store.sessions():
        count = run["workers"]
        name = f"wall time, {run['engine']}, {count} worker{'' if count == 1 else 's'}"
        # the clock may have been set back meanwhile
        note = {"seconds": max(0.0, run["heartbeat"] - run["started"])}
        by_engine.setdefault((run.get("purpose", ""), name, run.get("machine", "")), []).append(note)
    rows = []
    for (part, what, machine), notes in [*spent.items(), *sorted(by_engine.items())]:
        busy = [note["processor"] for note in notes if "processor" in note]
        rows.append(
            {
                "part": part,
                "what": what,
                "machine": machine,
                "count": len(notes),
                "seconds": round(sum(note["seconds"] for note in notes), 1),
                "timed": len(busy),
                "processor": round(sum(busy), 1) if busy else None,
            }
        )
    return rows


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
