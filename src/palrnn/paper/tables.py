"""Results as CSV tables, the only thing that figures and the summary are made from.

A table holds what is finished: it can be written at any moment of a run, and grows with it.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pandas as pd

from palrnn.engine.files import write_bytes
from palrnn.experiments.presets import Preset
from palrnn.experiments.store import Store
from palrnn.experiments.studies import STUDIES, study_tasks


def write_tables(preset: Preset, store: Store) -> list[Path]:
    """Write the table of every study that has a result, and what the computation took; return the files."""
    tables = {name: rows for study in STUDIES.values() for name, rows in study.tables.items()}
    filled = {
        name: rows(preset, store) for name, rows in (tables | {"computation.csv": _computation}).items()
    }
    return [write_table(store.folder / name, rows) for name, rows in filled.items() if rows]


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as CSV (gzipped if the name says so), atomically, the same bytes for the same rows."""
    text = pd.DataFrame(rows).to_csv(index=False, float_format="%.10g", lineterminator="\n").encode()
    write_bytes(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


def read_table(folder: str | os.PathLike[str], name: str) -> pd.DataFrame | None:
    """Return a table of a results folder, or None if it is not there yet."""
    path = Path(folder) / name
    return pd.read_csv(path) if path.is_file() else None


def _computation(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """Tasks and seconds by kind and machine, and the wall time of all runs in this folder."""
    timings = store.timings()
    spent: dict[tuple[str, str], list[float]] = {}
    for task in study_tasks(preset):
        if task.hash in timings and store.has(task):
            note = timings[task.hash]
            spent.setdefault((task.kind.name, note["machine"]), []).append(note["seconds"])
    rows: list[dict[str, Any]] = [
        {"what": kind, "machine": machine, "count": len(seconds), "seconds": round(sum(seconds), 1)}
        for (kind, machine), seconds in sorted(spent.items())
    ]
    by_engine: dict[str, list[float]] = {}
    for run in store.sessions():
        count = run["workers"]
        name = f"wall time, {run['engine']}, {count} worker{'' if count == 1 else 's'}"
        by_engine.setdefault(name, []).append(run["heartbeat"] - run["started"])
    for name, seconds in sorted(by_engine.items()):
        rows.append({"what": name, "machine": "", "count": len(seconds), "seconds": round(sum(seconds), 1)})
    return rows
