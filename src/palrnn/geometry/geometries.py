"""The curvature that the marginal likelihood sees, and that of teacher forcing beside it, on one segment."""

from __future__ import annotations

import warnings
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_instance
from palrnn.engine.plain import plain
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.geometry.comparison import Forced, Mismatch, curvature_gap, subspace_overlap
from palrnn.geometry.config import GeometryConfig, GeometrySettings, InformationConfig, InformationSettings
from palrnn.geometry.exact import exact_information
from palrnn.geometry.information import IndefiniteInformationWarning, ObservedInformation
from palrnn.geometry.itf import ForcedDivergenceError, ITFOperator
from palrnn.geometry.sampled import sampled_information
from palrnn.geometry.summary import GeometryComparison
from palrnn.inference import FewPathsWarning
from palrnn.inference.particle_filter import checked_series
from palrnn.model import PALRNN, Forcing, as_forcing
from palrnn.model.families.alrnn_layout import null_units
from palrnn.model.inputs import checked_inputs

# different particles at the narrowest place below which the switching part is a guess: an error of 45 %
_FEW = 10


def observed_information(
    model: PALRNN,
    x: ArrayLike,
    config: InformationConfig | None = None,
    *,
    inputs: ArrayLike | None = None,
    progress: Progress | None = quiet,
    **settings: Unpack[InformationSettings],
) -> ObservedInformation:
    """Return the observed information of the drift on a segment ``x (T, N)`` (Alg. rbpf-louis).

    With ``states="exact"``, the default, gate paths are sampled and everything given a path is exact; with
    ``states="sampled"`` states are sampled, too, as in the paper. The other settings are those of
    `InformationConfig`, given as keywords, as a ``config``, or as a ``config`` with some of them changed;
    ``InformationConfig.paper()`` is the paper's estimator. NaN in ``x[1:]`` means not observed. A driven
    model needs its ``inputs (T, K)``, and the entries of C are among its parameters, the last ones.

    Warns with `FewPathsWarning` where nearly all paths come from a few particles of the filter.
    """
    chosen = InformationConfig() if config is None else as_instance(config, "config", InformationConfig)
    chosen = chosen.changed(**settings) if settings else chosen
    series = checked_series(model, x)
    given = checked_inputs(model, inputs, len(series))
    estimate = exact_information if chosen.states == "exact" else sampled_information
    with listening(progress, "observed information") as report:
        found = estimate(model, series, chosen, report, given)
    if model.drift.gated and found.distinct.min() < min(_FEW, chosen.paths):
        fewest, step = int(found.distinct.min()), int(found.distinct.argmin())
        message = (
            f"at step {step} the {len(found.filtered) * chosen.paths} gate paths pass through {fewest} "
            "different particles: what varies over them comes out too small; take more passes or particles"
        )
        warnings.warn(message, FewPathsWarning, stacklevel=2)
    return found


def compare_geometries(
    model: PALRNN,
    x: ArrayLike,
    forcing: Forcing | int,
    config: GeometryConfig | None = None,
    *,
    inputs: ArrayLike | None = None,
    progress: Progress | None = quiet,
    **settings: Unpack[GeometrySettings],
) -> GeometryComparison:
    """Return both geometries of ``model`` on a segment ``x (T, N)`` in its coordinates, and how they differ.

    The weight of the forcing loss is the model's own observation noise. The settings are those of
    `GeometryConfig`, given as keywords, as a ``config``, or as a ``config`` with some of them changed;
    ``GeometryConfig.paper()`` is the paper's estimator. Where the forced rollout diverges, forcing has no
    curvature, and the figures are those of the marginal likelihood. A driven model needs its ``inputs (T,
    K)``.
    """
    chosen = GeometryConfig() if config is None else as_instance(config, "config", GeometryConfig)
    chosen = chosen.changed(**settings) if settings else chosen
    how = as_forcing(forcing).final
    louis = InformationConfig(**chosen.model_dump(include=set(InformationConfig.model_fields)))
    observed = observed_information(model, x, louis, inputs=inputs, progress=progress)
    size = observed.parameters
    k, dense = min(chosen.k, size - 1), size <= chosen.most_dense
    if dense:
        with listening(progress, "information matrices") as report:
            observed.build(report)
    figures = {"forcing": how.to_dict()} | chosen.model_dump() | {"k": k} | _likelihood(observed, dense)
    try:
        first = observed.filtered[0]
        operator = ITFOperator(model.drift, first.x, how, model.observation, inputs=first.inputs)
    except ForcedDivergenceError:
        nothing = {"trace_itf": None, "gap": None, "gap_stderr": None, "overlap": None}
        return GeometryComparison(plain(figures | nothing), None, observed)
    if not dense:
        figures |= _gap(operator.trace(), observed)
        figures["overlap"] = None
        if chosen.lanczos:
            figures["overlap"] = subspace_overlap(operator.leading(k)[1], observed.leading(k)[1])
        return GeometryComparison(plain(figures), operator, observed)
    itf = operator.dense()
    figures |= _gap(float(np.trace(itf)), observed)
    whole, inside = (
        _directions(itf, observed, chosen, project=project, inputs=model.drift.input_dim)
        for project in (False, True)
    )
    figures |= whole[1] | {f"identifiable_{name}": value for name, value in inside[1].items()}
    figures |= {
        "null": whole[0].null,
        "eigenvalues_itf": whole[0].itf_eigenvalues,
        "eigenvalues_observed": whole[0].observed_eigenvalues,
        "overlaps": whole[0].overlaps[:k],
    }
    return GeometryComparison(plain(figures), operator, observed, itf, whole[0], inside[0])


def _likelihood(observed: ObservedInformation, dense: bool) -> dict[str, Any]:
    """Return the figures of the marginal likelihood; traces per step."""
    errors, others = observed.standard_errors, observed.leave_one_out
    values: dict[str, Any] = {
        "parameters": observed.parameters,
        "steps": observed.steps,
        "entropy_bound": observed.entropy_bound,
        "distinct": [int(observed.distinct.min()), int(observed.distinct.max())],
        "mir": observed.mir,
        "mir_stderr": errors["mir"],
        "informed_dimensions": observed.informed_dimensions if dense else None,
    }
    by_pass = {"entropy_bits": "code_entropy", "ess": "ess", "log_evidence": "log_evidence"}
    by_pass |= {"missing_dimensions": "missing_dimensions"} if dense else {}
    for name, source in by_pass.items():
        values[name] = getattr(observed, source)
        values[f"{name}_stderr"] = observed.error_of([getattr(part, source) for part in others])
    for name in ("observed", "complete", "missing", "missing_state", "missing_switching"):
        known = name in observed.traces
        values[f"trace_{name}"] = observed.traces[name] / observed.steps if known else None
        values[f"trace_{name}_stderr"] = errors[name] / observed.steps if known else None
    return values


def _gap(per_step: float, observed: ObservedInformation) -> dict[str, Any]:
    """Return the trace of the ITF Fisher, the curvature gap and its error."""
    with warnings.catch_warnings():
        # a negative trace shows in the result
        warnings.simplefilter("ignore", IndefiniteInformationWarning)
        gap, *others = (
            curvature_gap(per_step, part.trace_observed, part.steps)
            for part in (observed, *observed.leave_one_out)
        )
    return {"trace_itf": per_step, "gap": gap, "gap_stderr": observed.error_of(others)}


def _directions(
    itf: Floats, observed: ObservedInformation, config: GeometryConfig, *, project: bool, inputs: int
) -> tuple[Mismatch, dict[str, Any]]:
    """Return the mismatch of both matrices per step, and its figures with their errors."""
    forced = Forced(itf, null_units(itf, observed.observed, inputs=inputs), project=project, inputs=inputs)
    found, *others = (
        forced.against(part.observed / part.steps, ridge=config.ridge, k=min(config.k, len(itf) - 1))
        for part in (observed, *observed.leave_one_out)
    )
    errors = {
        f"{name}_stderr": observed.error_of([other.figures[name] for other in others])
        for name in found.figures
    }
    return found, found.figures | errors
