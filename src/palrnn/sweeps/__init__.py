"""The paper's studies as resumable sweeps, on one machine or a Dask cluster.

The task engine is loaded at once; the studies, which bring every other room with them, when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from palrnn.experiments.cluster import ClusterEngine
from palrnn.experiments.local import LocalEngine
from palrnn.experiments.runner import Tally, closure, run
from palrnn.experiments.store import Store
from palrnn.experiments.task import Job, Kind, Outcome, Task, execute

if TYPE_CHECKING:
    from palrnn.experiments.archive import pack, unpack
    from palrnn.experiments.fidelity import fidelity_page
    from palrnn.experiments.presets import Preset, load_preset, preset_in
    from palrnn.experiments.status import sweep_status
    from palrnn.experiments.studies import study_tasks
    from palrnn.experiments.summary import write_summary
    from palrnn.experiments.tables import read_table, write_tables
    from palrnn.experiments.zoo import load_from_zoo, zoo_models

_LATER = {
    "Preset": "presets",
    "fidelity_page": "fidelity",
    "load_from_zoo": "zoo",
    "load_preset": "presets",
    "pack": "archive",
    "preset_in": "presets",
    "read_table": "tables",
    "study_tasks": "studies",
    "sweep_status": "status",
    "unpack": "archive",
    "write_summary": "summary",
    "write_tables": "tables",
    "zoo_models": "zoo",
}

__all__ = [
    "ClusterEngine",
    "Job",
    "Kind",
    "LocalEngine",
    "Outcome",
    "Preset",
    "Store",
    "Tally",
    "Task",
    "closure",
    "execute",
    "fidelity_page",
    "load_from_zoo",
    "load_preset",
    "pack",
    "preset_in",
    "read_table",
    "run",
    "study_tasks",
    "sweep_status",
    "unpack",
    "write_summary",
    "write_tables",
    "zoo_models",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"palrnn.experiments.{_LATER[name]}"), name)
    raise AttributeError(f"module 'palrnn.experiments' has no attribute {name!r}")
