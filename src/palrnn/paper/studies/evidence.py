"""Panel (c): does more evidence mean better dynamics?

A model is given noise and fine-tuned on windows (`tuning`), the result is a PAL-RNN; then its evidence on
held-out windows (`evidence`) and the invariants of its hard-gated rollout (`invariants`) are separate tasks.
``baseline`` is not tuned, so it is one model for all window lengths.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palrnn.engine.progress import quiet
from palrnn.experiments.checkpoints import (
    Regime,
    checkpoint_task,
    evidence_regimes,
    invariants_task,
)
from palrnn.experiments.presets import Preset, TuningDataSettings, stated
from palrnn.experiments.series import tuning_series
from palrnn.experiments.store import Store
from palrnn.experiments.task import Kind, Task
from palrnn.inference import FilterDiedError, windowed_evidence
from palrnn.model import PALRNN, Checkpoint, checkpoint_bytes, checkpoint_from_bytes
from palrnn.tuning import SAEMConfig, saem

TUNING = Kind("tuning", "palrnn.experiments.evidence:tuned", ".safetensors")
EVIDENCE = Kind("evidence", "palrnn.experiments.evidence:heldout_evidence")


def tuning_task(preset: Preset, regime: Regime, configuration: str, length: int) -> Task:
    """The fine-tuning of one model in one configuration with one window length."""
    evidence = preset.evidence
    config: dict[str, Any] = {"configuration": configuration}
    name, cost = f"{regime.name} {configuration}", 1e-3
    if configuration != "baseline":
        config |= stated(evidence.saem) | {"length": length}
        name, cost = f"{name} L{length}", float(length)
    settings = {
        "data": stated(evidence.data),
        "process_std": evidence.start_process_std,
        "observation_std": evidence.start_observation_std,
        "gate_std": evidence.gate_std,
        "saem": config,
        "seed": evidence.saem_seed,
    }
    return Task(TUNING, settings, {"model": checkpoint_task(preset, regime)}, cost=cost, label=name)


def evidence_task(preset: Preset, regime: Regime, configuration: str, length: int) -> Task:
    """The held-out evidence of one tuned model, on the same windows for all of them."""
    how = preset.evidence.saem
    settings = {
        "data": stated(preset.evidence.data),
        "length": length,
        "windows": preset.evidence.heldout_windows,
        "particles": how.particles,
        "ess_threshold": how.ess_threshold,
        "target": how.target,
        "seed": preset.evidence.saem_seed,
    }
    model = tuning_task(preset, regime, configuration, length)
    label = f"{regime.name} {configuration} L{length}"
    return Task(EVIDENCE, settings, {"model": model}, cost=float(length), label=label)


def evidence_units(preset: Preset) -> list[tuple[Regime, str, int]]:
    """Every model, configuration and window length; short windows first, as they are quick."""
    return [
        (regime, configuration, length)
        for length in sorted(preset.evidence.lengths)
        for configuration in preset.evidence.configurations
        for regime in evidence_regimes(preset)
    ]


def evidence_tasks(preset: Preset) -> list[Task]:
    """Tuning, evidence and invariants of every unit."""
    tasks = []
    for unit in evidence_units(preset):
        tasks += [evidence_task(preset, *unit), invariants_task(preset, tuning_task(preset, *unit))]
    return tasks


def tuned(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Give the model noise and fine-tune it; the result lives in the coordinates of the tuning data."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    series = tuning_series(TuningDataSettings(**settings["data"]), _dt(checkpoint))
    noises = (settings[name] for name in ("process_std", "observation_std", "gate_std"))
    start = PALRNN(checkpoint.drift, *noises)
    config, seed = SAEMConfig(**settings["saem"]), settings["seed"]
    result = saem(start, series.train, config, seed=seed, progress=quiet, threads=1)
    notes = {"tuning": settings, "trained": checkpoint.training}
    return checkpoint_bytes(
        result.model,
        standardizer=series.standardizer,
        dt=checkpoint.dt,
        training=notes,
        arrays={"x1": series.train[0, 0]},
    )


def heldout_evidence(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Score the held-out windows; the model's fitted noise is reported with them.

    Where no particle can explain some window, there is no evidence, and ``died`` says where.
    """
    checkpoint = checkpoint_from_bytes(inputs["model"])
    model = checkpoint.model
    assert isinstance(model, PALRNN)
    series = tuning_series(TuningDataSettings(**settings["data"]), _dt(checkpoint))
    names = ("windows", "particles", "ess_threshold", "target", "seed")
    how = {name: settings[name] for name in names}
    noises = {
        "fitted_process_std": float(np.sqrt(model.process_variances.mean())),
        "fitted_observation_std": float(np.sqrt(model.observation_variances.mean())),
    }
    try:
        found = windowed_evidence(model, series.heldout, settings["length"], **how, progress=quiet, threads=1)
    except FilterDiedError as error:
        return noises | {"evidence": math.nan, "evidence_stderr": math.nan, "died": str(error)}
    return noises | {"evidence": found.mean, "evidence_stderr": found.stderr, "died": None}


def evidence_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per model, configuration and window length, as far as evidence and invariants are there."""
    rows, timings = [], store.timings()
    for regime, configuration, length in evidence_units(preset):
        model = tuning_task(preset, regime, configuration, length)
        tasks = (evidence_task(preset, regime, configuration, length), invariants_task(preset, model))
        if not all(store.has(task) for task in tasks):
            continue
        found, measured = (store.result(task) for task in tasks)
        exponent = measured["lyapunov"]
        spent = [timings[task.hash]["seconds"] for task in (model, tasks[0]) if task.hash in timings]
        rows.append(
            {
                "process_std": regime.process_std,
                "observation_std": regime.observation_std,
                "length": length,
                "configuration": configuration,
                "evidence": found["evidence"],
                "evidence_stderr": found["evidence_stderr"],
                "died": found["died"] is not None,
                "dstsp": measured["dstsp"],
                "outside": measured["outside"],
                "lyapunov": exponent,
                "lyapunov_error": None
                if exponent is None
                else exponent - preset.invariants.lyapunov_reference,
                "diverged_at": measured["diverged_at"],
                "fitted_process_std": found["fitted_process_std"],
                "fitted_observation_std": found["fitted_observation_std"],
                "seconds": round(sum(spent), 3) if len(spent) == 2 else None,
            }
        )
    return rows


def _dt(checkpoint: Checkpoint) -> float:
    assert checkpoint.dt is not None
    return checkpoint.dt
