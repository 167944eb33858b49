"""Both geometries on one segment, side by side."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from safetensors.numpy import save as safetensors_bytes

from palrnn.engine.checks import Floats, as_int
from palrnn.engine.files import write_bytes
from palrnn.engine.plain import plain
from palrnn.engine.progress import Progress, quiet
from palrnn.geometry.comparison import Mismatch, curvature_gap, mismatch, subspace_overlap
from palrnn.geometry.itf import ForcedDivergenceError, ITFOperator
from palrnn.geometry.observed import IndefiniteInformationWarning, ObservedInformation, observed_information
from palrnn.model import PALRNN, Forcing, as_forcing

_ALWAYS = frozenset({"forcing", "parameters", "steps", "gap", "trace_itf", "overlap", "k", "mir", "paths"})
#: Above this number of parameters no p x p matrix is built (72 MB each).
MOST_DENSE = 3000


@dataclass(frozen=True, eq=False)
class GeometryComparison:
    """The curvature of teacher forcing and of the marginal likelihood on the same segment, at the same drift.

    ``figures`` are all its numbers, by name: traces and eigenvalues are per step, ``gap`` is in decades, and
    None stands for what is not finite or was not computed. They are its plain form (`to_dict`), from which
    `from_dict` makes it again; the parts that they were computed from are None then: ``operator`` and ``itf``
    (p, p) of teacher forcing per step, ``observed`` of the whole segment, ``mismatch`` on all directions and
    ``identifiable`` without the null ones. For more than `MOST_DENSE` parameters there are no matrices either
    (``overlap`` comes from Lanczos), and none of forcing where the forced rollout diverges.
    """

    figures: Mapping[str, Any]
    operator: ITFOperator | None = field(default=None, repr=False)
    observed: ObservedInformation | None = None
    itf: Floats | None = field(default=None, repr=False)
    mismatch: Mismatch | None = None
    identifiable: Mismatch | None = None

    @property
    def gap(self) -> float:
        """The curvature gap in decades; NaN where tr(observed) <= 0, or forcing has no curvature."""
        return _nan(self.figures["gap"])

    @property
    def trace_itf(self) -> float:
        """The trace of the ITF Fisher information per step; NaN where the forced rollout diverges."""
        return _nan(self.figures["trace_itf"])

    @property
    def overlap(self) -> float:
        """The overlap of the ``k`` leading directions."""
        return _nan(self.figures["overlap"])

    @property
    def k(self) -> int:
        """The number of directions that ``overlap`` is about."""
        return int(self.figures["k"])

    @property
    def forcing(self) -> Forcing:
        """The forcing whose curvature it is."""
        return Forcing.from_dict(self.figures["forcing"])

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        return dict(self.figures)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GeometryComparison:
        """Return the comparison with the figures of `to_dict`, without what they were computed from."""
        missing = _ALWAYS - values.keys()
        if missing:
            raise ValueError(f"a comparison of geometries must have {min(missing)}")
        Forcing.from_dict(values["forcing"])
        return cls(dict(values))

    def informations(self) -> dict[str, Any]:
        """Return both information matrices of the whole segment, or their leading eigenpairs, by name."""
        if self.operator is None or self.observed is None:
            raise ValueError(
                "a comparison that was read back, or without curvature of forcing, has no matrices"
            )
        steps = self.observed.steps
        if self.itf is not None:
            return {"teacher forcing": steps * self.itf, "observed information": self.observed.observed}
        values, vectors = self.operator.leading(self.k)
        leading = self.observed.leading(self.k)
        return {"teacher forcing": (steps * values, vectors), "observed information": leading}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matrices as .safetensors: itf (per step), observed, complete, missing and its parts."""
        if self.itf is None:
            raise ValueError(f"there are no matrices to save for {self.figures['parameters']} parameters")
        names = ("observed", "complete", "missing", "missing_state", "missing_switching")
        matrices = {name: getattr(self.observed, name) for name in names} | {"itf": self.itf}
        write_bytes(path, safetensors_bytes({n: m for n, m in matrices.items() if m is not None}))

    def __repr__(self) -> str:
        figures = self.figures
        return (
            f"GeometryComparison(gap={self.gap:.3f}, MIR {figures['mir']:.3f}, p={figures['parameters']}, "
            f"{figures['steps']} steps, negative={figures.get('negative')}, overlap={self.overlap:.3f} at "
            f"k={self.k}, {self.forcing!r})"
        )


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
    `ITFOperator`, `observed_information` and `mismatch`. Where the forced rollout diverges, forcing has no
    curvature, and the figures are those of the marginal likelihood.
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
    how, size = as_forcing(forcing).final, len(model.drift.theta)
    k = min(k, size - 1)
    try:
        operator = ITFOperator(model.drift, observed.filtered.x, how, model.observation)
    except ForcedDivergenceError:
        nothing = {"trace_itf": None, "gap": None, "gap_stderr": None, "overlap": None}
        return GeometryComparison(_figures(observed, how, size, k) | nothing, None, observed)
    if size > MOST_DENSE:
        figures = _figures(observed, how, size, k) | _gap(operator.trace(), observed)
        figures["overlap"] = subspace_overlap(operator.leading(k)[1], observed.leading(k)[1])
        return GeometryComparison(figures, operator, observed)
    itf = operator.dense()
    per_step = observed.observed / observed.steps
    whole = mismatch(itf, per_step, ridge=ridge, k=k)
    inside = mismatch(itf, per_step, ridge=ridge, k=k, project=True)
    figures = _figures(observed, how, size, k) | _gap(float(np.trace(itf)), observed)
    figures |= _directions(whole, inside)
    return GeometryComparison(figures, operator, observed, itf, whole, inside)


def _figures(observed: ObservedInformation, forcing: Forcing, size: int, k: int) -> dict[str, Any]:
    """Return the figures of the marginal likelihood; traces per step."""
    errors, filtered = observed.standard_errors, observed.filtered
    values: dict[str, Any] = {
        "forcing": forcing.to_dict(),
        "parameters": size,
        "steps": observed.steps,
        "particles": filtered.particles,
        "paths": int(observed.scores.shape[0]),
        "states_per_path": int(observed.scores.shape[1]),
        "target": filtered.target,
        "entropy_bits": observed.code_entropy,
        "entropy_bound": filtered.entropy_bound,
        "ess": observed.ess,
        "distinct": [int(observed.distinct[0]), int(observed.distinct[-1])],
        "log_evidence": filtered.log_evidence,
        "mir": observed.mir,
        "mir_stderr": errors["mir"],
        "missing_dimensions": observed.missing_dimensions,
        "informed_dimensions": observed.informed_dimensions,
        "needed_samples": observed.needed_samples,
        "k": k,
    }
    for name in ("observed", "complete", "missing", "missing_state", "missing_switching"):
        trace, error = getattr(observed, f"trace_{name}"), errors.get(name)
        values[f"trace_{name}"] = None if trace is None else trace / observed.steps
        values[f"trace_{name}_stderr"] = None if error is None else error / observed.steps
    return plain(values)


def _gap(trace: float, observed: ObservedInformation) -> dict[str, Any]:
    """Return the curvature gap, with the Monte Carlo error that it has from tr(observed)."""
    with warnings.catch_warnings():
        # a negative trace shows in the result
        warnings.simplefilter("ignore", IndefiniteInformationWarning)
        gap = curvature_gap(trace, observed.trace_observed, observed.steps)
    relative = observed.standard_errors["observed"] / observed.trace_observed
    error = relative / math.log(10.0) if observed.trace_observed > 0 else math.nan
    return plain({"trace_itf": trace, "gap": gap, "gap_stderr": error})


def _directions(whole: Mismatch, inside: Mismatch) -> dict[str, Any]:
    """Return what the matrices say direction by direction."""
    values: dict[str, Any] = {"null": whole.null, "overlap": whole.overlap}
    for prefix, found in (("", whole), ("identifiable_", inside)):
        values |= {f"{prefix}{name}": getattr(found, name) for name in ("logdet_gap", "q90", "negative")}
    values |= {
        "identifiable_overlap": inside.overlap,
        "eigenvalues_itf": whole.itf_eigenvalues,
        "eigenvalues_observed": whole.observed_eigenvalues,
        "overlaps": whole.overlaps[: whole.k],
    }
    return plain(values)


def _nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
