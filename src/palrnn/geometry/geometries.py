"""Both geometries on one segment, side by side: `compare_geometries`."""

from __future__ import annotations

import warnings
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_instance
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.geometry.comparison import Forced, curvature_gap, subspace_overlap
from palrnn.geometry.config import GeometryConfig, GeometrySettings, InformationConfig
from palrnn.geometry.information import IndefiniteInformationWarning, ObservedInformation, jackknife_error
from palrnn.geometry.itf import ITFOperator
from palrnn.geometry.observed import observed_information
from palrnn.geometry.sensitivity import forced_states
from palrnn.geometry.summary import MOST_DENSE, GeometryComparison
from palrnn.model import PALRNN, Forcing, as_forcing
from palrnn.model.families.alrnn_layout import null_units


def compare_geometries(
    model: PALRNN,
    x: ArrayLike,
    forcing: Forcing | int,
    config: GeometryConfig | None = None,
    *,
    progress: Progress | None = quiet,
    **settings: Unpack[GeometrySettings],
) -> GeometryComparison:
    """Return both geometries of ``model`` on a segment ``x (T, N)`` in its coordinates, and how they differ.

    The weight of the forcing loss is the model's own observation noise. The settings are those of `GeometryConfig`,
    given as keywords, as a ``config``, or as a ``config`` with some of them changed; ``GeometryConfig.paper()`` is the
    paper's estimator.
    """
    chosen = GeometryConfig() if config is None else as_instance(config, "config", GeometryConfig)
    chosen = chosen.changed(**settings) if settings else chosen
    how = as_forcing(forcing).final
    louis = InformationConfig(**chosen.model_dump(include=set(InformationConfig.model_fields)))
    observed = observed_information(model, x, louis, progress=progress)
    series = observed.filtered[0].x
    # a gap in the data is not a divergence: the operator says what is wrong with it
    diverged = not np.isnan(series).any() and forced_states(model.drift, series, how)[1] >= 0
    operator = None if diverged else ITFOperator(model.drift, series, how, model.observation)
    dense = observed.parameters <= MOST_DENSE
    if dense:
        with listening(progress, "information matrices") as report:
            observed.build(report)
    sides = _sides(operator, observed, chosen, dense)
    return GeometryComparison(
        forcing=how,
        config=chosen,
        parameters=observed.parameters,
        steps=observed.steps,
        mir=observed.mir,
        missing_dimensions=observed.missing_dimensions if dense else None,
        informed_dimensions=observed.informed_dimensions if dense else None,
        entropy_bits=observed.code_entropy,
        entropy_bound=observed.entropy_bound,
        ess=observed.ess,
        log_evidence=observed.log_evidence,
        distinct=int(observed.distinct.min()) if model.drift.gated else 1,
        observed=observed,
        operator=operator,
        **sides,
    )


def _sides(
    operator: ITFOperator | None, observed: ObservedInformation, config: GeometryConfig, dense: bool
) -> dict[str, Any]:
    """Return the fields of a comparison that both sides have a part in, and all errors."""
    k = min(config.k, observed.parameters - 1)
    errors = {f"trace_{name}": value for name, value in observed.standard_errors.items() if name != "mir"}
    errors |= {"mir": observed.standard_errors["mir"], "gap": np.nan}
    traces: dict[str, float | None] = {"itf": None} | {n: v for n, v in observed.traces.items() if n != "mir"}
    sides: dict[str, Any] = {"traces": traces, "gap": np.nan, "overlap": None, "k": k, "itf": None}
    sides |= {"mismatch": None, "identifiable": None, "errors": errors}
    if operator is None:
        return sides
    itf = operator.dense() if dense else None
    per_step = operator.trace() if itf is None else float(np.trace(itf))
    traces["itf"] = (observed.steps - 1) * per_step
    parts, certain = observed.leave_one_out, observed.standard_errors["observed"] == 0.0
    gaps = [_gap(per_step, part) for part in (observed, *parts)]
    sides |= {"gap": gaps[0], "itf": itf}
    errors["gap"] = 0.0 if certain else jackknife_error(gaps[1:])
    if itf is None:
        sides["overlap"] = subspace_overlap(operator.leading(k)[1], observed.leading(k)[1])
        return sides
    units = null_units(itf, observed.observed)
    for name, prefix, project in (("mismatch", "", False), ("identifiable", "identifiable_", True)):
        forced = Forced(_symmetric(itf), units, project=project)
        found = [
            forced.against(_symmetric(part.observed) / observed.steps, ridge=config.ridge, k=k)
            for part in (observed, *parts)
        ]
        sides[name] = found[0]
        for figure in found[0].figures:
            others = [other.figures[figure] for other in found[1:]]
            errors[f"{prefix}{figure}"] = 0.0 if certain else jackknife_error(others)
    sides["overlap"] = sides["mismatch"].overlap
    return sides


def _gap(per_step: float, observed: ObservedInformation) -> float:
    with warnings.catch_warnings():
        # a negative trace shows in the result
        warnings.simplefilter("ignore", IndefiniteInformationWarning)
        return curvature_gap(per_step, observed.trace_observed, observed.steps)


def _symmetric(matrix: Floats) -> Floats:
    return 0.5 * (matrix + matrix.T)
