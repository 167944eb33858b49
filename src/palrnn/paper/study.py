"""The studies by name: which tasks each consists of, and which tables it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from palrnn.engine.checks import one_of
from palrnn.experiments.checkpoints import (
    checkpoint_rows,
    checkpoint_tasks,
    floor_rows,
    floor_task,
    invariants_task,
)
from palrnn.experiments.evidence import evidence_rows, evidence_tasks
from palrnn.experiments.gap import gap_rows, gap_tasks
from palrnn.experiments.presets import Preset
from palrnn.experiments.runner import closure
from palrnn.experiments.shown import attractor_rows, attractor_tasks, diagnostics_rows, diagnostics_tasks
from palrnn.experiments.store import Store
from palrnn.experiments.task import Task
from palrnn.experiments.toy import toy_rows, toy_tasks


class Study(NamedTuple):
    """What a study does and what it yields."""

    tasks: Callable[[Preset], list[Task]]
    tables: dict[str, Callable[[Preset, Store], list[dict[str, Any]]]]


def _models(preset: Preset) -> list[Task]:
    models = checkpoint_tasks(preset)
    return [*models, *(invariants_task(preset, model) for model in models), floor_task(preset)]


STUDIES = {
    "toy": Study(toy_tasks, {"toy.csv": toy_rows}),
    "checkpoints": Study(_models, {"checkpoints.csv": checkpoint_rows, "floor.csv": floor_rows}),
    "gap": Study(gap_tasks, {"gap.csv": gap_rows}),
    "diagnostics": Study(diagnostics_tasks, {"diagnostics.csv": diagnostics_rows}),
    "attractor": Study(attractor_tasks, {"attractor.csv.gz": attractor_rows}),
    "evidence": Study(evidence_tasks, {"evidence.csv": evidence_rows}),
}


def study_tasks(preset: Preset, studies: Iterable[str] = tuple(STUDIES)) -> list[Task]:
    """Return the tasks of these studies with all they need, each once, in the order in which to do them."""
    names = [one_of(name, "study", STUDIES) for name in studies]
    return closure(task for name in names for task in STUDIES[name].tasks(preset))
