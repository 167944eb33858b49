"""The paper's studies: presets, tasks, tables, figures, verdicts, and the zoo of trained models.

Names are loaded when they are used: the studies bring every other room with them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palrnn.paper.claim import Claim, Finding
    from palrnn.paper.fidelity import fidelity_page
    from palrnn.paper.presets import Preset, load_preset, preset_in
    from palrnn.paper.reproduction import Reproduction, reproduce, results_status
    from palrnn.paper.study import Study, all_studies, study_tasks
    from palrnn.paper.tables import Tables
    from palrnn.paper.zoo import ZooModel, load_from_zoo, zoo_models

_FILES = {
    "claim": ("Claim", "Finding"),
    "fidelity": ("fidelity_page",),
    "presets": ("Preset", "load_preset", "preset_in"),
    "reproduction": ("Reproduction", "reproduce", "results_status"),
    "study": ("Study", "all_studies", "study_tasks"),
    "tables": ("Tables",),
    "zoo": ("ZooModel", "load_from_zoo", "zoo_models"),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}

__all__ = [
    "Claim",
    "Finding",
    "Preset",
    "Reproduction",
    "Study",
    "Tables",
    "ZooModel",
    "all_studies",
    "fidelity_page",
    "load_from_zoo",
    "load_preset",
    "preset_in",
    "reproduce",
    "results_status",
    "study_tasks",
    "zoo_models",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"palrnn.paper.{_HOME[name]}"), name)
    raise AttributeError(f"module 'palrnn.paper' has no attribute {name!r}")
