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
from palrnn.engine.display import Display, bars_svg
from palrnn.engine.files import write_bytes, write_json
from palrnn.geometry.comparison import Mismatch
from palrnn.geometry.information import ObservedInformation
from palrnn.geometry.itf import ITFOperator
from palrnn.model import Forcing

_ALWAYS = frozenset({"forcing", "parameters", "steps", "gap", "trace_itf", "overlap", "k", "mir", "paths"})
_PARTS = ("observed", "complete", "missing", "missing_state", "missing_switching")


@dataclass(frozen=True, eq=False)
class GeometryComparison(Display):
    """The curvature of teacher forcing and of the marginal likelihood on the same segment, at the same drift.

    ``figures`` are all its numbers, by name, and its plain form: `to_dict` gives them, `from_dict` and `load`
    make a comparison of them again. ``trace_NAME`` and eigenvalues are per step (``traces_of_segment`` are
    not), ``gap`` is in decades, ``NAME_stderr`` is the standard error of NAME over independent passes of the
    filter, and None stands for what is not finite or was not computed. Figures of directions are on all of
    them, and without the null ones where they begin with ``identifiable_``. The settings of `GeometryConfig`
    and the ``forcing`` are among them.

    What they were computed from is there until it is saved: ``operator`` and ``itf`` (p, p) of teacher
    forcing per step, ``observed`` of the whole segment, ``mismatch`` on all directions and ``identifiable``
    without the null ones. For more than ``most_dense`` parameters there are no matrices (``overlap`` comes
    from Lanczos, if asked for), and none of forcing where the forced rollout diverges.
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
    def gap_error(self) -> float:
        """The standard error of ``gap``; NaN with one pass of the filter."""
        return _nan(self.figures.get("gap_stderr"))

    @property
    def trace_itf(self) -> float:
        """The trace of the ITF Fisher information per step; NaN where the forced rollout diverges."""
        return _nan(self.figures["trace_itf"])

    @property
    def traces_per_step(self) -> dict[str, float]:
        """Traces per step by name: itf, observed, complete, missing and its parts; NaN where none is."""
        return {name: _nan(self.figures.get(f"trace_{name}")) for name in ("itf", *_PARTS)}

    @property
    def traces_of_segment(self) -> dict[str, float]:
        """The same of the whole segment: T - 1 predictions under forcing, T steps of the likelihood."""
        steps = int(self.figures["steps"])
        return {n: v * (steps - 1 if n == "itf" else steps) for n, v in self.traces_per_step.items()}

    @property
    def overlap(self) -> float:
        """The overlap of the ``k`` leading directions."""
        return _nan(self.figures["overlap"])

    @property
    def k(self) -> int:
        """The number of directions that ``overlap`` is about."""
        return int(self.figures["k"])

    @property
    def negative(self) -> int | None:
        """Directions in which the observed information is negative; None without matrices."""
        return self.figures.get("negative")

    @property
    def null(self) -> int | None:
        """Directions on which neither objective depends; None without matrices."""
        return self.figures.get("null")

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all figures as JSON; `load` reads them."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GeometryComparison:
        """Read what `save` wrote."""
        file = Path(path)
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            return cls.from_dict(values)
        except (ValueError, AttributeError, OSError) as error:
            raise ValueError(f"{file}: not a saved comparison of geometries: {error}") from None

    def save_matrices(self, path: str | os.PathLike[str]) -> None:
        """Write the matrices as .safetensors: itf (per step), observed (of the segment) and its parts."""
        observed = self._information()
        if observed.parameters > self.figures["most_dense"]:
            raise ValueError(
                f"there are no matrices to save for {observed.parameters} parameters: most_dense is "
                f"{self.figures['most_dense']}"
            )
        matrices = {name: getattr(observed, name) for name in _PARTS} | {"itf": self.itf}
        write_bytes(path, safetensors_bytes({n: m for n, m in matrices.items() if m is not None}))

    def informations(self) -> dict[str, Any]:
        """Return the information of the whole segment under each geometry, by name, for `laplace`.

        Matrices, or leading eigenvalues and vectors where none were built; under forcing, none where it
        diverged.
        """
        observed = self._information()
        found: dict[str, Any] = {}
        if self.operator is not None:
            # the ITF Fisher is a mean over T - 1 predictions
            steps = observed.steps - 1
            if self.itf is not None:
                found["teacher forcing"] = steps * self.itf
            else:
                values, vectors = self.operator.leading(self.k)
                found["teacher forcing"] = (steps * values, vectors)
        dense = observed.parameters <= self.figures["most_dense"]
        return found | {"observed information": observed.observed if dense else observed.leading(self.k)}

    def _information(self) -> ObservedInformation:
        if self.observed is None:
            raise ValueError("a comparison that was read back has no matrices: compute it again")
        return self.observed

    def heading(self) -> str:
        """Return what was compared."""
        figures = self.figures
        return f"Geometry of {figures['parameters']} parameters on {figures['steps']} steps, {self.forcing!r}"

    def facts(self) -> list[tuple[str, str]]:
        """Return the gap, traces per step, missing information and directions."""
        return [(name.strip(), words) for name, words in self._rows()]

    def records(self) -> list[dict[str, Any]]:
        """Return one row per information: its trace ``per_step`` with ``stderr``, and ``of_segment``."""
        segment = self.traces_of_segment
        return [
            {
                "information": name,
                "per_step": value,
                "stderr": _nan(self.figures.get(f"trace_{name}_stderr")),
                "of_segment": segment[name],
            }
            for name, value in self.traces_per_step.items()
        ]

    def picture(self) -> str:
        """Return the traces as bars, in decades from the least to the greatest."""
        traces = {name: value for name, value in self.traces_per_step.items() if value > 0}
        logs = {name: math.log10(value) for name, value in traces.items()}
        low, high = min(logs.values(), default=0.0) - 0.5, max(logs.values(), default=0.0)
        return bars_svg([(name, (value - low) / max(high - low, 1e-9)) for name, value in logs.items()])

    def __repr__(self) -> str:
        figures = self.figures
        head = (
            f"GeometryComparison(p={figures['parameters']}, {figures['steps']} steps, {self.forcing!r}, "
            f"states={figures.get('states', 'sampled')!r}, target={figures.get('target')!r}; traces per step:"
        )
        return "\n".join([head, *(f"  {label:<23} {value}" for label, value in self._rows())]) + ")"

    def _rows(self) -> list[tuple[str, str]]:
        figures = self.figures

        def number(name: str, digits: str = ".4g") -> str:
            value, error = figures.get(name), figures.get(f"{name}_stderr")
            if value is None:
                return "none"
            return f"{value:{digits}}" + (f" +- {error:.2g}" if error else "")

        rows = [
            ("curvature gap", f"{number('gap', '.3f')} decades"),
            ("tr(itf)", number("trace_itf")),
            ("tr(observed)", number("trace_observed")),
            ("missing", f"{number('mir', '.3f')} of tr(complete) = {number('trace_complete')}"),
        ]
        if figures.get("trace_missing_switching") is not None:
            rows.append(("  by the gates", f"{number('trace_missing_switching')}, the rest by the state"))
        rows.append((f"overlap of leading {self.k}", number("overlap", ".3f")))
        if self.negative is not None:
            rows += [
                (
                    "log-det gap",
                    f"{number('identifiable_logdet_gap', '.0f')} decades, identifiable directions",
                ),
                (
                    "0.9 quantile of ratios",
                    f"{number('identifiable_q90', '.2f')} decades, identifiable directions",
                ),
                ("negative directions", f"{number('negative', '.0f')}, and {self.null} null"),
            ]
        entropy = f"{number('entropy_bits', '.3f')} of at most {number('entropy_bound', '.2f')} bits"
        return [
            *rows,
            ("code entropy", f"{entropy}, mean ESS {number('ess', '.1f')} of {figures.get('particles')}"),
        ]


def _nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
