"""Both geometries on one segment, side by side."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from safetensors.numpy import save as safetensors_bytes

from palrnn.engine.checks import Floats, as_int
from palrnn.engine.files import write_bytes
from palrnn.engine.progress import Progress, quiet
from palrnn.geometry.comparison import Mismatch, curvature_gap, mismatch, subspace_overlap
from palrnn.geometry.itf import ITFOperator
from palrnn.geometry.information import IndefiniteInformationWarning, ObservedInformation
from palrnn.geometry.observed import observed_information
from palrnn.model import PALRNN, Forcing

#: Above this number of parameters no p x p matrix is built (72 MB each).
MOST_DENSE = 3000


@dataclass(frozen=True, eq=False)
class GeometryComparison:
    """The curvature of teacher forcing and of the marginal likelihood on the same segment, at the same drift.

    ``itf`` (p, p) per step and ``observed`` of the whole segment; ``gap`` in decades; ``mismatch`` on all
    directions and ``identifiable`` without the null ones. For more than `MOST_DENSE` parameters there are
    no matrices: ``itf``, ``mismatch`` and ``identifiable`` are None, and ``overlap`` comes from Lanczos.
    """

    operator: ITFOperator = field(repr=False)
    observed: ObservedInformation
    trace_itf: float
    gap: float
    overlap: float
    k: int
    itf: Floats | None = field(repr=False)
    mismatch: Mismatch | None
    identifiable: Mismatch | None

    @property
    def gap_error(self) -> float:
        """The Monte Carlo standard error of ``gap``, from that of tr(observed); NaN where there is no gap."""
        observed = self.observed
        relative = observed.standard_errors["observed"] / observed.trace_observed
        return relative / math.log(10.0) if observed.trace_observed > 0 else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers, None where there is none."""
        observed, errors = self.observed, self.observed.standard_errors
        values: dict[str, Any] = {
            "parameters": self.operator.shape[0],
            "steps": observed.steps,
            "particles": observed.filtered.particles,
            "paths": int(observed.scores.shape[0]),
            "states_per_path": int(observed.scores.shape[1]),
            "target": observed.filtered.target,
            "entropy_bits": observed.code_entropy,
            "entropy_bound": observed.filtered.entropy_bound,
            "ess": observed.ess,
            "log_evidence": observed.filtered.log_evidence,
            "gap": self.gap,
            "gap_stderr": self.gap_error,
            "trace_itf": self.trace_itf,
            "mir": observed.mir,
            "mir_stderr": errors["mir"],
        }
        for name in ("observed", "complete", "missing", "missing_state", "missing_switching"):
            values[f"trace_{name}"] = getattr(observed, f"trace_{name}")
            values[f"trace_{name}_stderr"] = errors.get(name)
        values |= {
            "missing_dimensions": observed.missing_dimensions,
            "informed_dimensions": observed.informed_dimensions,
            "needed_samples": observed.needed_samples,
            "overlap": self.overlap,
            "k": self.k,
        }
        for prefix, found in (("", self.mismatch), ("identifiable_", self.identifiable)):
            if found is not None:
                values |= {
                    f"{prefix}{name}": getattr(found, name) for name in ("logdet_gap", "q90", "negative")
                }
        if self.mismatch is not None and self.identifiable is not None:
            values |= {"null": self.mismatch.null, "identifiable_overlap": self.identifiable.overlap}
        return {name: _number(value) for name, value in values.items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matrices as .safetensors: itf (per step), observed, complete, missing and its parts."""
        if self.itf is None:
            raise ValueError(f"there are no matrices to save for {self.operator.shape[0]} parameters")
        names = ("observed", "complete", "missing", "missing_state", "missing_switching")
        matrices = {name: getattr(self.observed, name) for name in names} | {"itf": self.itf}
        write_bytes(path, safetensors_bytes({n: m for n, m in matrices.items() if m is not None}))

    def __repr__(self) -> str:
        return f"GeometryComparison(gap={self.gap:.3f}, {self.observed!r}, {self.mismatch!r})"


def compare_geometries(
    model: PALRNN,
    x: ArrayLike,
    forcing: Forcing | int,
    *,
    particles: int = 64,
    paths: int = 8,
    states_per_path: int = 1,
    target: str = "paper",
    seed: int = 0,
    ridge: float = 1e-6,
    k: int = 50,
    progress: Progress | None = quiet,
) -> GeometryComparison:
    """Return both geometries of ``model`` on a segment ``x (T, N)`` in its coordinates, and how they differ.

    The weight of the forcing loss is the model's own observation noise. The arguments are those of
    `ITFOperator`, `observed_information` and `mismatch`.
    """
    k = as_int(k, "k", least=1)
    observed = observed_information(
        model,
        x,
        particles=particles,
        paths=paths,
        states_per_path=states_per_path,
        target=target,
        seed=seed,
        progress=progress,
    )
    operator = ITFOperator(model.drift, observed.filtered.x, forcing, model.observation)
    size, steps = operator.shape[0], observed.steps
    k = min(k, size - 1)
    if size > MOST_DENSE:
        trace = operator.trace()
        overlap = subspace_overlap(operator.leading(k)[1], observed.leading(k)[1])
        gap = _quiet_gap(trace, observed, steps)
        return GeometryComparison(operator, observed, trace, gap, overlap, k, None, None, None)
    itf = operator.dense()
    trace, per_step = float(np.trace(itf)), observed.observed / steps
    whole = mismatch(itf, per_step, ridge=ridge, k=k)
    inside = mismatch(itf, per_step, ridge=ridge, k=k, project=True)
    gap = _quiet_gap(trace, observed, steps)
    return GeometryComparison(operator, observed, trace, gap, whole.overlap, k, itf, whole, inside)


def _quiet_gap(trace: float, observed: ObservedInformation, steps: int) -> float:
    with warnings.catch_warnings():
        # a negative trace shows in the result
        warnings.simplefilter("ignore", IndefiniteInformationWarning)
        return curvature_gap(trace, observed.trace_observed, steps)


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
