"""`GeometryComparison`: what there is to say about both geometries on one segment."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.numpy import save as safetensors_bytes

from palrnn.engine.checks import Floats
from palrnn.engine.files import write_bytes, write_json
from palrnn.engine.plain import plain
from palrnn.geometry.comparison import Mismatch
from palrnn.geometry.config import GeometryConfig
from palrnn.geometry.information import ObservedInformation
from palrnn.geometry.itf import ITFOperator
from palrnn.model import Forcing

#: Above this number of parameters no p x p matrix is built (72 MB each).
MOST_DENSE = 3000
_PARTS = ("complete", "missing", "missing_state", "missing_switching", "observed")


@dataclass(frozen=True, eq=False)
class GeometryComparison:
    """The curvature of teacher forcing and of the marginal likelihood on the same segment, at the same drift.

    Everything here is a plain number, so that a comparison can be saved and loaded:

    - ``traces``: of the whole segment, by name: itf, observed, complete, missing, missing_state, missing_switching;
      ``traces_per_step`` are the same divided by the length
    - ``gap``: log10 of T tr(itf per step) / tr(observed), in decades; NaN where there is none; ``mir``: tr(missing) /
      tr(complete)
    - ``mismatch`` on all directions and ``identifiable`` without the null ones, per step: spectra, ratios, overlaps,
      negative directions
    - ``missing_dimensions`` of ``informed_dimensions`` (see `ObservedInformation`)
    - ``entropy_bits``, ``ess``, ``log_evidence``: of the filter; ``distinct``: the least number of different particles
      that the gate paths pass through at one time
    - ``errors``: standard errors by name, from independent passes of the filter; NaN with one pass

    ``forcing`` is the one that the ITF curvature belongs to, ``config`` how the information was estimated. Where the
    forced rollout diverges, forcing has no curvature: ``traces["itf"]``, ``overlap`` and both mismatches are None.
    For more than `MOST_DENSE` parameters no matrix is built: the mismatches are None, ``overlap`` comes from Lanczos.

    A comparison that was just made has matrices, too: `informations`, `save_matrices`.
    """

    forcing: Forcing
    config: GeometryConfig
    parameters: int
    steps: int
    traces: dict[str, float | None]
    mir: float
    gap: float
    overlap: float | None
    k: int
    mismatch: Mismatch | None
    identifiable: Mismatch | None
    missing_dimensions: float | None
    informed_dimensions: int | None
    entropy_bits: float
    entropy_bound: float
    ess: float
    log_evidence: float
    distinct: int
    errors: dict[str, float]
    observed: ObservedInformation | None = field(default=None, repr=False)
    operator: ITFOperator | None = field(default=None, repr=False)
    itf: Floats | None = field(default=None, repr=False)

    @property
    def traces_per_step(self) -> dict[str, float | None]:
        """``traces`` per step: itf is a mean over T - 1 predictions, the others are divided by T, as in the paper."""
        return {
            name: None if value is None else value / (self.steps - 1 if name == "itf" else self.steps)
            for name, value in self.traces.items()
        }

    @property
    def gap_error(self) -> float:
        """The standard error of ``gap``."""
        return self.errors["gap"]

    @property
    def negative(self) -> int | None:
        """Directions in which the observed information is negative; None without matrices."""
        return None if self.mismatch is None else self.mismatch.negative

    @property
    def null(self) -> int | None:
        """Directions on which neither objective depends; None without matrices."""
        return None if self.mismatch is None else self.mismatch.null

    def informations(self) -> dict[str, Any]:
        """Return the information of the whole segment under each geometry, for `laplace`.

        These are matrices, or leading eigenvalues and their vectors where no matrix was built. Where the forced rollout
        diverged, there is no information under forcing.
        """
        observed = self._just_made()
        found: dict[str, Any] = {}
        if self.operator is not None:
            if self.itf is not None:
                found["teacher forcing"] = (self.steps - 1) * self.itf
            else:
                values, vectors = self.operator.leading(self.k)
                found["teacher forcing"] = ((self.steps - 1) * values, vectors)
        dense = self.parameters <= MOST_DENSE
        return found | {"observed information": observed.observed if dense else observed.leading(self.k)}

    def save_matrices(self, path: str | os.PathLike[str]) -> None:
        """Write the matrices as .safetensors: itf (per step), observed (of the segment) and its parts."""
        observed = self._just_made()
        if self.parameters > MOST_DENSE:
            raise ValueError(f"there are no matrices to save for {self.parameters} parameters")
        matrices = {name: getattr(observed, name) for name in _PARTS} | {"itf": self.itf}
        write_bytes(path, safetensors_bytes({n: m for n, m in matrices.items() if m is not None}))

    def _just_made(self) -> ObservedInformation:
        if self.observed is None:
            raise ValueError("this comparison was loaded: it has all its numbers, but no matrices; compute it again")
        return self.observed

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, None where there is none.

        ``trace_NAME`` is of the whole segment, ``trace_NAME_per_step`` per step; ``NAME_stderr`` is an error.
        """
        values: dict[str, Any] = {"forcing": self.forcing.to_dict()}
        values |= self.config.model_dump() | {"k": self.k}
        values |= {name: getattr(self, name) for name in _NUMBERS}
        per_step = self.traces_per_step
        for name, value in self.traces.items():
            values |= {f"trace_{name}": value, f"trace_{name}_per_step": per_step[name]}
        values |= {f"{name}_stderr": value for name, value in self.errors.items()}
        for prefix, found in (("", self.mismatch), ("identifiable_", self.identifiable)):
            if found is not None:
                values |= {f"{prefix}{name}": value for name, value in found.figures.items()}
                values[f"{prefix}mismatch"] = found.to_dict()
        values["null"] = self.null
        return {name: plain(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GeometryComparison:
        """Return the comparison that `to_dict` was made of, without its matrices."""
        names = ("itf", *_PARTS)
        errors = {name.removesuffix("_stderr"): v for name, v in values.items() if name.endswith("_stderr")}
        mismatches = {
            name: None if values.get(key) is None else Mismatch.from_dict(values[key])
            for name, key in (("mismatch", "mismatch"), ("identifiable", "identifiable_mismatch"))
        }
        numbers = {name: values[name] for name in _NUMBERS} | {"k": values["k"]}
        return cls(
            forcing=Forcing.from_dict(values["forcing"]),
            config=GeometryConfig(**{name: values[name] for name in GeometryConfig.model_fields}),
            traces={name: values[f"trace_{name}"] for name in names if f"trace_{name}" in values},
            errors={name: math.nan if v is None else v for name, v in errors.items()},
            **numbers | {"gap": math.nan if values["gap"] is None else values["gap"]},
            **mismatches,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON; `load` reads them."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GeometryComparison:
        """Read what `save` wrote."""
        file = Path(path)
        try:
            return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file}: not a saved geometry: {error}") from None

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"GeometryComparison(p={self.parameters}, {self.steps} steps, {self.forcing!r}, "
                f"states={self.config.states!r}, target={self.config.target!r}:",
                *(f"  {label:<24}{value}" for label, value in _rows(self)),
            ]
        )


_NUMBERS = (
    "parameters",
    "steps",
    "mir",
    "gap",
    "overlap",
    "missing_dimensions",
    "informed_dimensions",
    "entropy_bits",
    "entropy_bound",
    "ess",
    "log_evidence",
    "distinct",
)


def _rows(found: GeometryComparison) -> list[tuple[str, str]]:
    """Return what a person wants to see first: label and value with its error."""

    def number(value: float | None, name: str, digits: str = ".4g") -> str:
        if value is None or math.isnan(value):
            return "none"
        error = found.errors.get(name, math.nan)
        return f"{value:{digits}}" + ("" if math.isnan(error) else f" +- {error:.2g}")

    traces, inside = found.traces, found.identifiable
    rows = [
        ("curvature gap", number(found.gap, "gap", ".3f") + " decades"),
        ("tr(itf)", f"{number(traces['itf'], '')}, of the whole segment as all traces"),
        ("tr(observed)", number(traces["observed"], "trace_observed")),
        ("missing", f"{number(found.mir, 'mir', '.3f')} of {number(traces['complete'], 'trace_complete')}"),
    ]
    if traces.get("missing_switching") is not None:
        gates = number(traces["missing_switching"], "trace_missing_switching")
        rows.append(("  by the gates", f"{gates}, the rest by the state"))
    rows.append((f"overlap of leading {found.k}", number(found.overlap, "overlap", ".3f")))
    if inside is not None:
        rows += [
            ("log-det gap", number(inside.logdet_gap, "identifiable_logdet_gap", ".0f") + " decades, identifiable"),
            ("0.9 quantile of ratios", number(inside.q90, "identifiable_q90", ".2f") + " decades, identifiable"),
            ("negative directions", number(found.negative, "negative", ".0f") + f", {found.null} null"),
        ]
    entropy = f"{found.entropy_bits:.3f} of at most {found.entropy_bound:.2f} bits"
    return [*rows, ("code entropy", f"{entropy}, mean ESS {found.ess:.1f} of {found.config.particles})")]
