"""Panel (a): in a switching AR(1), more gate noise means more ambiguity and a flatter likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from palrnn.experiments.presets import Preset, stated
from palrnn.experiments.store import Store
from palrnn.experiments.task import Kind, Task
from palrnn.geometry import toy_information, toy_series

_FIGURES = ("entropy_bits", "mir", "log10_trace")

TOY = Kind("toy", "palrnn.experiments.toy:toy_runs")


def toy_tasks(preset: Preset) -> list[Task]:
    """One task per gate noise, with all its seeds."""
    toy = preset.toy
    fixed = {name: value for name, value in stated(toy).items() if not name.startswith("gate_std")}
    gates = np.geomspace(toy.gate_std_from, toy.gate_std_to, toy.gate_stds)
    return [Task(TOY, fixed | {"gate_std": float(gate)}, label=f"gate noise {gate:.3g}") for gate in gates]


def toy_runs(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Simulate and decompose the toy once per seed."""
    a0, a1, sigma, gate = (settings[name] for name in ("a0", "a1", "sigma", "gate_std"))
    runs = []
    for seed in range(settings["seeds"]):
        x = toy_series(gate, steps=settings["steps"], a0=a0, a1=a1, sigma=sigma, seed=seed)
        runs.append(toy_information(x, a0, a1, sigma, gate))
    return {name: [getattr(run, name) for run in runs] for name in _FIGURES}


def toy_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per gate noise and seed."""
    rows: list[dict[str, Any]] = []
    for task in toy_tasks(preset):
        if store.has(task):
            found = store.result(task)
            for seed in range(preset.toy.seeds):
                row = {name: found[name][seed] for name in _FIGURES}
                rows.append({"sigma_g": task.settings["gate_std"], "seed": seed} | row)
    return rows
