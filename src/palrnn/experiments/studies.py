"""The studies by name: which tasks each consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from palrnn.engine.checks import one_of
from palrnn.experiments.checkpoints import checkpoint_tasks, invariants_task
from palrnn.experiments.presets import Preset
from palrnn.experiments.runner import closure
from palrnn.experiments.task import Task


def _models(preset: Preset) -> list[Task]:
    models = checkpoint_tasks(preset)
    return [*models, *(invariants_task(preset, model) for model in models)]


_TASKS: dict[str, Callable[[Preset], list[Task]]] = {"checkpoints": _models}

STUDIES = tuple(_TASKS)


def study_tasks(preset: Preset, studies: Iterable[str] = STUDIES) -> list[Task]:
    """Return the tasks of these studies with all they need, each once, in the order in which to do them."""
    names = [one_of(name, "study", STUDIES) for name in studies]
    return closure(task for name in names for task in _TASKS[name](preset))
