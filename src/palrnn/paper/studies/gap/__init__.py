"""Panel (b): how much sharper is the teacher-forcing objective than the likelihood, at the same parameters?

One task is one model and one way of estimating the observed information (a variant). The segment is the first
stretch of the model's own test series, the noise of the PAL-RNN that of its own training data.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from palrnn.experiments.checkpoints import (
    Regime,
    checkpoint_task,
    gap_regimes,
    invariants_task,
)
from palrnn.experiments.presets import DataSettings, GapVariant, Preset, stated
from palrnn.experiments.series import training_series
from palrnn.experiments.store import Store
from palrnn.experiments.task import Kind, Task
from palrnn.geometry import (
    IndefiniteInformationWarning,
    curvature_gap,
    itf_fisher,
    mismatch,
    observed_information,
)
from palrnn.model import PALRNN, checkpoint_from_bytes

# the columns that the table begins with; the others follow
_FIRST = (
    "entropy_bits",
    "gap",
    "trace_itf",
    "trace_observed",
    "trace_complete",
    "mir",
    "logdet_gap",
    "q90",
)
_THEN = ("negative", "dstsp", "lyapunov")

GEOMETRY = Kind("geometry", "palrnn.experiments.gap:measured_geometry")


def geometry_task(preset: Preset, regime: Regime, variant: GapVariant) -> Task:
    """Both curvatures of one model, with one estimator of the observed information."""
    gap = preset.gap
    per_step = math.sqrt(preset.data.dt) if gap.process_noise == "per_step" else 1.0
    settings = {
        "data": stated(preset.data),
        "process_std": regime.process_std,
        "observation_std": regime.observation_std,
        "tau": regime.tau,
        "length": gap.length,
        "model_process_std": regime.process_std * per_step,
        "model_observation_std": regime.observation_std,
        "gate_std": gap.gate_std,
        "ess_threshold": gap.ess_threshold,
        "particles": variant.particles,
        "paths": variant.paths,
        "states_per_path": variant.states_per_path,
        "target": variant.target,
        "ridge": gap.ridge,
        "overlap": gap.overlap,
        "seed": regime.seed,
    }
    cost = float(variant.particles + variant.paths * variant.states_per_path)
    label = f"{regime.name} {variant.name}"
    return Task(GEOMETRY, settings, {"model": checkpoint_task(preset, regime)}, cost=cost, label=label)


def variant_regimes(preset: Preset, variant: GapVariant) -> list[Regime]:
    """The models that a variant is computed for."""
    return [
        regime
        for regime in gap_regimes(preset)
        if (variant.taus is None or regime.tau in variant.taus)
        and (variant.seeds is None or regime.seed in variant.seeds)
    ]


def gap_tasks(preset: Preset) -> list[Task]:
    """All geometries, variant by variant, and the invariants of the models."""
    tasks = [
        geometry_task(preset, regime, variant)
        for variant in preset.gap.variants
        for regime in variant_regimes(preset, variant)
    ]
    models = [checkpoint_task(preset, regime) for regime in gap_regimes(preset)]
    return [*tasks, *(invariants_task(preset, model) for model in models)]


def measured_geometry(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compute both curvatures on the same segment, their gap and their mismatch."""
    drift = checkpoint_from_bytes(inputs["model"]).drift
    data = DataSettings(**settings["data"])
    series = training_series(data, settings["process_std"], settings["observation_std"])
    x, steps = series.test[: settings["length"]], settings["length"]
    noise = settings["model_observation_std"]
    model = PALRNN(drift, settings["model_process_std"], noise, settings["gate_std"])
    fisher = itf_fisher(drift, x, settings["tau"], noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteInformationWarning)  # the counts are in the result
        names = ("particles", "paths", "states_per_path", "target", "ess_threshold", "seed")
        found = observed_information(model, x, **{name: settings[name] for name in names})
        gap = curvature_gap(np.trace(fisher), found.trace_observed, steps)
        compared = mismatch(
            fisher, found.observed / steps, ridge=settings["ridge"], k=min(settings["overlap"], len(fisher))
        )
    errors = found.standard_errors
    return {
        "entropy_bits": found.code_entropy,
        "entropy_bound": found.filtered.entropy_bound,
        "ess": found.ess,
        "log_evidence": found.filtered.log_evidence,
        "distinct_first": int(found.distinct[0]),
        "gap": gap,
        "trace_itf": float(np.trace(fisher)),
        "trace_observed": found.trace_observed,
        "trace_observed_stderr": errors["observed"],
        "trace_complete": found.trace_complete,
        "trace_missing_state": found.trace_missing_state,
        "trace_missing_switching": found.trace_missing_switching,
        "trace_missing_switching_stderr": errors.get("missing_switching"),
        "mir": found.mir,
        "missing_dimensions": found.missing_dimensions,
        "informed_dimensions": found.informed_dimensions,
        "logdet_gap": compared.logdet_gap,
        "q90": compared.q90,
        "overlap": compared.overlap,
        "negative": compared.negative,
        "null": compared.null,
        # of all p directions; a negative one counts among those that are not sharper under forcing
        "sharper_under_itf": float((compared.log10_gamma > 0).sum() / len(fisher)),
    }


def gap_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per model and variant; the invariants are those of the model."""
    rows = []
    for variant in preset.gap.variants:
        for regime in variant_regimes(preset, variant):
            task = geometry_task(preset, regime, variant)
            if not store.has(task):
                continue
            invariants = invariants_task(preset, task.needs["model"])
            measured = store.result(invariants) if store.has(invariants) else {}
            found = store.result(task)
            found[f"overlap{preset.gap.overlap}"] = found.pop("overlap")
            how = {"variant": variant.name} | {
                name: getattr(variant, name) for name in ("particles", "paths", "states_per_path", "target")
            }
            found |= {name: measured.get(name) for name in ("dstsp", "lyapunov")}
            first = [name for name in (*_FIRST, f"overlap{preset.gap.overlap}", *_THEN) if name in found]
            ordered = {name: found[name] for name in (*first, *(n for n in found if n not in first))}
            rows.append(regime._asdict() | how | ordered)
    return rows
