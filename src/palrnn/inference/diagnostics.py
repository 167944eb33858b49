"""The health of a filter pass in a few short lists: what is kept of it, printed and drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference.config import FilterConfig, SampleConfig
from palrnn.inference.record import Filtered
from palrnn.inference.smoothing import drawn_paths


@dataclass(frozen=True, eq=False)
class FilterDiagnostics:
    """What a pass of the filter says about itself; arrays have one entry per scored step.

    ``ess``, ``resampled``, ``code_entropy`` and ``bit_entropy`` as in `Filtered`; ``paths`` gate paths were
    drawn after the pass, of which ``distinct (T-1,)`` differ up to each step. The deviations are the typical
    ones of the model's noise, ``gated`` its number of gates, ``observed_dim`` that of its coordinates.
    """

    config: FilterConfig
    log_evidence: float
    ess: Floats
    resampled: NDArray[np.bool_]
    code_entropy: Floats
    bit_entropy: Floats
    distinct: NDArray[np.int64]
    paths: int
    gated: int
    observed_dim: int
    process_std: float
    observation_std: float
    gate_std: float

    @classmethod
    def of(cls, found: Filtered, paths: int = 64) -> FilterDiagnostics:
        """Return the diagnostics of a pass, with ``paths`` gate paths drawn after it."""
        model = found.model
        # how few different paths are left is part of the result here, not a matter for a warning
        drawn = drawn_paths(found, SampleConfig(paths=paths, seed=found.config.seed, method="ancestors"))
        return cls(
            found.config,
            found.log_evidence,
            found.ess,
            found.resampled,
            found.code_entropy,
            found.bit_entropy,
            np.asarray(drawn.distinct, dtype=np.int64),
            paths,
            model.drift.gated,
            model.drift.observed_dim,
            model.process.typical_std,
            model.observation.typical_std,
            model.gate_std,
        )

    @property
    def steps(self) -> int:
        """The number of scored steps."""
        return len(self.ess)

    @property
    def entropy_bound(self) -> float:
        """The largest entropy, in bits, that so many particles over so many gates can show."""
        return min(math.log2(self.config.particles), float(self.gated))

    @property
    def evidence_per_number(self) -> float:
        """The log evidence per step and coordinate."""
        return self.log_evidence / (self.steps * self.observed_dim)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, with means for those who want one number."""
        return {
            "steps": self.steps,
            "log_evidence": self.log_evidence,
            "log_evidence_per_step_and_dimension": self.evidence_per_number,
            "mean_ess": float(self.ess.mean()),
            "times_resampled": int(self.resampled.sum()),
            "code_entropy_bits": float(self.code_entropy.mean()),
            "bit_entropy_bits": float(self.bit_entropy.mean()),
            "entropy_bound_bits": self.entropy_bound,
            **self.config.model_dump(mode="json"),
            **{name: getattr(self, name) for name in _NUMBERS},
            **{name: getattr(self, name).tolist() for name in _ARRAYS},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FilterDiagnostics:
        """Return the diagnostics of `to_dict`."""
        config = FilterConfig(**{name: values[name] for name in FilterConfig.model_fields})
        parts: dict[str, Any] = {name: np.array(values[name], dtype=kind) for name, kind in _ARRAYS.items()}
        parts |= {name: values[name] for name in _NUMBERS}
        return cls(config, values["log_evidence"], **parts)

    def __repr__(self) -> str:
        return (
            f"FilterDiagnostics({self.steps} steps: log_evidence={self.log_evidence:.4f}, mean ess "
            f"{self.ess.mean():.1f} of {self.config.particles}, mean code entropy "
            f"{self.code_entropy.mean():.3f} of at most {self.entropy_bound:.2f} bits)"
        )


_ARRAYS: dict[str, type[Any]] = {
    "ess": np.float64,
    "resampled": np.bool_,
    "code_entropy": np.float64,
    "bit_entropy": np.float64,
    "distinct": np.int64,
}
_NUMBERS = ("paths", "gated", "observed_dim", "process_std", "observation_std", "gate_std")
