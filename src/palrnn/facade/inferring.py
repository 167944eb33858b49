"""What inference says about a model: the filter's health, the two geometries, evidence through tuning.

The model is a PAL-RNN here, and series are in its standardised coordinates.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.progress import Progress, quiet
from palrnn.facade.settings import FilterSettings, GeometrySettings, Noise, TuneSettings
from palrnn.geometry import (
    GeometryComparison,
    IndefiniteInformationWarning,
    ITFOperator,
    compare_geometries,
    observed_information,
)
from palrnn.inference import Filtered, rbpf, smooth
from palrnn.model import ALRNN, PALRNN
from palrnn.report.findings import Filtering, Geometry, Stage, Tuning
from palrnn.tuning import SAEMConfig, SAEMResult, saem

_SHOWN_OVERLAPS = 50


def filtered(model: PALRNN, x: Floats, settings: FilterSettings, progress: Progress = quiet) -> Filtered:
    """Return the particle filter's pass over the start of ``x``."""
    return rbpf(
        model,
        x[: settings.steps],
        particles=settings.particles,
        seed=settings.seed,
        target=settings.target,
        resampling=settings.resampling,
        ess_threshold=settings.ess_threshold,
        progress=progress,
    )


def filtering(found: Filtered, settings: FilterSettings) -> Filtering:
    """Return the diagnostics of a filter pass, and how many of the gate paths drawn after it differ."""
    model = found.model
    smoothed = smooth(found, paths=settings.paths, seed=settings.seed)
    return Filtering(
        particles=found.particles,
        ess_threshold=settings.ess_threshold,
        target=found.target,
        log_evidence=found.log_evidence,
        ess=found.ess.tolist(),
        resampled=found.resampled.tolist(),
        entropy_bits=found.code_entropy.tolist(),
        gated=model.drift.gated,
        process_std=model.process.typical_std,
        observation_std=model.observation.typical_std,
        gate_std=model.gate_std,
        paths=settings.paths,
        distinct_first=int(smoothed.distinct[0]),
    )


def compared(
    model: PALRNN, x: Floats, tau: int, settings: GeometrySettings, progress: Progress = quiet
) -> Geometry:
    """Return how the curvatures of forcing and of the marginal likelihood compare on the start of ``x``.

    Large networks are compared without matrices (see `compare_geometries`). Where the forced rollout
    diverges, forcing has no curvature, and what is found is that of the marginal likelihood.
    """
    segment, tau = x[: settings.steps], settings.tau or tau
    budget: dict[str, Any] = settings.model_dump(
        include={"particles", "paths", "states_per_path", "target", "seed"}
    )
    budget["progress"] = progress
    with warnings.catch_warnings():
        # the report says so itself, with the number of negative directions
        warnings.simplefilter("ignore", IndefiniteInformationWarning)
        if _forcing_diverges(model, segment, tau):
            louis, forcing = observed_information(model, segment, **budget), {}
        else:
            found = compare_geometries(model, segment, tau, ridge=settings.ridge, k=_SHOWN_OVERLAPS, **budget)
            louis, forcing = found.observed, _forcing_findings(found)
    steps = len(segment)
    return Geometry(
        steps=steps,
        tau=tau,
        particles=settings.particles,
        samples=louis.samples,
        target=settings.target,
        entropy_bits=louis.code_entropy,
        trace_observed=louis.trace_observed / steps,
        trace_complete=louis.trace_complete / steps,
        trace_state=(louis.trace_missing_state or 0.0) / steps,
        trace_switching=(louis.trace_missing_switching or 0.0) / steps,
        mir=louis.mir,
        dimension=model.drift.latent_dim * (model.drift.latent_dim + 2),
        **forcing,
    )


def tuned(
    model: PALRNN,
    x: Floats,
    settings: TuneSettings,
    configuration: str,
    *,
    tau: int,
    dt: float | None = None,
    progress: Progress | None = None,
) -> SAEMResult:
    """Return what particle-SAEM makes of ``model``: the first half of ``x`` tunes, the second judges.

    ``configuration`` is "baseline" to judge the model as it is; ``tau`` is the forcing interval of
    "anchored".
    """
    half = len(x) // 2
    length = min(settings.length, max(2, (half - 1) // 4))
    steps = max(100, min(9000, half))
    config = SAEMConfig(
        configuration=configuration,  # type: ignore[arg-type]
        length=length,
        iterations=settings.iterations,
        windows=settings.windows,
        particles=settings.particles,
        paths=settings.paths,
        target=settings.target,
        tau=tau,
        heldout_windows=min(settings.heldout_windows, (half - 1) // length),
        rollout_steps=steps + 1000,
        rollout_discard=1000,
        dt=dt or 1.0,
    )
    return saem(
        model,
        x[:half],
        config,
        seed=settings.seed,
        heldout=x[half:],
        reference=x[half : half + steps],
        progress=progress,
    )


def tuning(results: list[SAEMResult]) -> Tuning:
    """Return the stages of tuning: each configuration's last model on the same held-out windows."""
    config = results[0].config
    stages = []
    for result in results:
        last = result.history.rows[-1]
        course = result.history["evidence"]
        stages.append(
            Stage(
                name=result.config.configuration,
                evidence=_number(last["heldout_evidence"]),
                evidence_stderr=_number(last["heldout_stderr"]),
                process_std=result.model.process.typical_std,
                observation_std=result.model.observation.typical_std,
                dstsp=_number(last["dstsp"]),
                lyapunov=_number(last["lyapunov"]),
                history=tuple(course[np.isfinite(course)].tolist()),
            )
        )
    return Tuning(
        length=config.length,
        windows=config.heldout_windows,
        particles=config.particles,
        target=config.target,
        stages=stages,
    )


def noise_of(model: ALRNN | PALRNN) -> Noise:
    """Return the noise of a PAL-RNN, one deviation for all coordinates; the usual one for an AL-RNN."""
    if not isinstance(model, PALRNN):
        return Noise()
    return Noise(
        process_std=model.process.typical_std,
        observation_std=model.observation.typical_std,
        gate_std=model.gate_std,
    )


def _forcing_diverges(model: PALRNN, x: Floats, tau: int) -> bool:
    try:
        ITFOperator(model.drift, x, tau, model.observation)
    except ValueError:
        # model, series and settings have been checked: nothing else is left to refuse
        return True
    return False


def _forcing_findings(found: GeometryComparison) -> dict[str, Any]:
    values: dict[str, Any] = {"gap": _number(found.gap), "trace_itf": found.trace_itf}
    whole = found.mismatch
    if whole is None:
        return values | {"overlap": [(found.k, found.overlap)]}
    return values | {
        "logdet_gap": _number(whole.logdet_gap),
        "q90": _number(whole.q90),
        "negative": whole.negative,
        "eigenvalues_itf": whole.itf_eigenvalues.tolist(),
        "eigenvalues_observed": whole.observed_eigenvalues.tolist(),
        "overlap": [(k + 1, float(value)) for k, value in enumerate(whole.overlaps[:_SHOWN_OVERLAPS])],
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
