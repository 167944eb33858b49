"""The paper's studies: presets, tasks, tables, figures, verdicts, and the zoo of trained models.

Names are loaded when they are used: the studies bring every other room with them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"palrnn.paper.{_HOME[name]}"), name)
    raise AttributeError(f"module 'palrnn.paper' has no attribute {name!r}")


if TYPE_CHECKING:
    from palrnn.paper.claim import *  # noqa: F403
    from palrnn.paper.fidelity import *  # noqa: F403
    from palrnn.paper.presets import *  # noqa: F403
    from palrnn.paper.reproduction import *  # noqa: F403
    from palrnn.paper.study import *  # noqa: F403
    from palrnn.paper.tables import *  # noqa: F403
    from palrnn.paper.zoo import *  # noqa: F403
