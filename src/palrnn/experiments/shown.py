"""What the appendix shows of one model: the filter's traces, and attractors before and after tuning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palrnn.data import windows
from palrnn.engine.checks import Floats
from palrnn.experiments.checkpoints import Regime
from palrnn.experiments.evidence import tuning_task
from palrnn.experiments.presets import (
    AttractorSettings,
    DiagnosticsSettings,
    Preset,
    TuningDataSettings,
    stated,
)
from palrnn.experiments.series import reference_series, tuning_series
from palrnn.experiments.store import Store
from palrnn.experiments.task import Kind, Task
from palrnn.inference import rbpf
from palrnn.invariants import free_run
from palrnn.model import PALRNN, checkpoint_from_bytes

TRACES = Kind("traces", "palrnn.experiments.shown:filter_traces")
ATTRACTOR = Kind("attractor", "palrnn.experiments.shown:rollouts")

_SHOWN = ("baseline", "full")


def diagnostics_tasks(preset: Preset) -> list[Task]:
    """The traces of the shown model before and after full tuning, for each number of particles."""
    return [_traces_task(preset, name, count) for name in _SHOWN for count in preset.diagnostics.particles]


def attractor_tasks(preset: Preset) -> list[Task]:
    """The rollouts of the shown model before and after full tuning, beside the true system."""
    shown = preset.attractor
    settings = {"steps": shown.steps, "discard": preset.invariants.discard, "dt": preset.data.dt}
    needs = {name: _model(preset, shown, name) for name in _SHOWN}
    return [Task(ATTRACTOR, settings, needs, label=needs["full"].label)]


def filter_traces(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Filter one held-out window."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    assert isinstance(checkpoint.model, PALRNN)
    series = tuning_series(TuningDataSettings(**settings["data"]), checkpoint.dt or math.nan)
    window = windows(series.heldout[0], settings["length"])[settings["window"]]
    how = {name: settings[name] for name in ("particles", "ess_threshold", "target", "seed")}
    found = rbpf(checkpoint.model, window, **how)
    return {
        "ess": found.ess / found.particles,
        "resampled": found.resampled,
        "entropy_bits": found.code_entropy,
        "entropy_bound": found.entropy_bound,
        "log_evidence": found.increments,
    }


def rollouts(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Let the true system and both models run freely from the same true state, in raw coordinates."""
    steps = settings["steps"]
    truth = reference_series(steps, settings["discard"], settings["dt"])
    shown: dict[str, Any] = {"truth": _rounded(truth)}
    for name in _SHOWN:
        checkpoint = checkpoint_from_bytes(inputs[name])
        standardizer = checkpoint.standardizer
        assert standardizer is not None
        # a rollout that ends early is drawn so far
        run = free_run(checkpoint.drift, standardizer.transform(truth[0]), steps)
        shown[name] = _rounded(standardizer.inverse(run.observed))
    return shown


def diagnostics_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per configuration, number of particles and step."""
    rows = []
    for name in _SHOWN:
        for count in preset.diagnostics.particles:
            task = _traces_task(preset, name, count)
            if not store.has(task):
                continue
            found = store.result(task)
            bound = found.pop("entropy_bound")
            for step, values in enumerate(zip(*found.values(), strict=True), start=1):
                traced = dict(zip(found, values, strict=True))
                how = {"configuration": name, "particles": count, "step": step, "entropy_bound": bound}
                rows.append(how | traced)
    return rows


def attractor_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per step: the three coordinates of truth, baseline and tuned model."""
    (task,) = attractor_tasks(preset)
    if not store.has(task):
        return []
    found = store.result(task)
    rows = []
    for step in range(preset.attractor.steps):
        row: dict[str, Any] = {"step": step}
        for name, states in found.items():
            state = states[step] if step < len(states) else (None, None, None)
            row |= dict(zip((f"{name}_x", f"{name}_y", f"{name}_z"), state, strict=True))
        rows.append(row)
    return rows


def _traces_task(preset: Preset, configuration: str, particles: int) -> Task:
    shown, how = preset.diagnostics, preset.evidence.saem
    settings = {
        "data": stated(preset.evidence.data),
        "length": shown.length,
        "window": shown.window,
        "particles": particles,
        "ess_threshold": how.ess_threshold,
        "target": how.target,
        "seed": preset.evidence.saem_seed,
    }
    model = _model(preset, shown, configuration)
    return Task(TRACES, settings, {"model": model}, label=f"{model.label} {particles} particles")


def _model(preset: Preset, shown: DiagnosticsSettings | AttractorSettings, configuration: str) -> Task:
    evidence = preset.evidence
    regime = Regime(shown.process_std, shown.observation_std, evidence.tau, evidence.seed)
    return tuning_task(preset, regime, configuration, shown.length)


def _rounded(states: Floats) -> list[list[float]]:
    # a ten-thousandth of a unit is far below what a picture shows
    rounded: list[list[float]] = np.round(states, 4).tolist()
    return rounded
