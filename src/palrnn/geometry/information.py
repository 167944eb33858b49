"""`ObservedInformation`: what every estimate of the observed information can be asked."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, quiet
from palrnn.geometry.config import InformationConfig
from palrnn.geometry.operators import InformationParts
from palrnn.inference import Filtered


class IndefiniteInformationWarning(UserWarning):
    """The observed information has no trace to compare, or too few samples to be positive at all."""


class ObservedInformation(InformationParts):
    """The observed information of one segment, its parts and their errors, and how the filter fared.

        observed = complete - missing,     missing = missing_state + missing_switching      (eq. louis)

    Matrices are ``(p, p)`` over theta, of the whole segment (divide by T for the per-step scale). They are
    built when asked for; the traces, products with vectors (``information @ v``) and ``leading`` pairs do
    without.

    ``missing_state`` is from not knowing the state given the gate path, ``missing_switching`` from not
    knowing the path. Under ``target="exact"`` the path is that of the noisy gate inputs u, and Louis'
    identity holds: ``score`` and ``observed`` are gradient and minus the Hessian of the log evidence. Under
    ``target="paper"`` the path is that of the codes, whose probabilities Phi(mu / sqrt(nu + gate_std^2))
    depend on theta through the belief; the paper's recipe leaves their score out, so that ``observed`` is the
    recipe's and not a Hessian of that filter's evidence (see `paper_path_derivatives`).

    ``filtered`` are the passes of the filter. ``distinct (T-1,)`` is the number of different particles that
    the paths pass through at each time, over all passes. ``standard_errors`` come from leaving out one pass
    at a time (NaN with one pass): paths of one pass have ancestors in common, and their spread says too
    little.
    """

    config: InformationConfig
    filtered: tuple[Filtered, ...]
    distinct: NDArray[np.int64]

    @property
    @abstractmethod
    def score(self) -> Floats:
        """The mean complete-data score ``(p,)``; under the exact target, the gradient of the log evidence."""

    @property
    @abstractmethod
    def complete(self) -> Floats:
        """E[I_comp | x], ``(p, p)``."""

    @property
    @abstractmethod
    def observed(self) -> Floats:
        """E[I_comp | x] - Cov(s | x), ``(p, p)``."""

    @property
    @abstractmethod
    def missing_switching(self) -> Floats | None:
        """Cov_c E(s | c), ``(p, p)``: from not knowing the gates. None where the samples cannot tell."""

    @property
    @abstractmethod
    def leave_one_out(self) -> tuple[Self, ...]:
        """The same estimate without each of the passes; nothing if there is one pass."""

    def build(self, progress: Progress = quiet) -> None:
        """Build the matrices now, and report on it; otherwise they are built when asked for."""
        progress(1, 1, {"trace": float(np.trace(self.observed))})

    @property
    def missing(self) -> Floats:
        """Cov(s | x), ``(p, p)``."""
        return self.complete - self.observed

    @property
    def missing_state(self) -> Floats | None:
        """E_c Cov(s | c), ``(p, p)``: from not knowing the state given the gates."""
        switching = self.missing_switching
        return None if switching is None else self.missing - switching

    @cached_property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors of ``traces``, over the passes of the filter."""
        parts = [part.traces for part in self.leave_one_out]
        return {name: self.error_of([part[name] for part in parts]) for name in self.traces}

    def error_of(self, without: Sequence[float]) -> float:
        """Return the standard error of a figure from its values for ``leave_one_out`` (jackknife)."""
        if len(without) < 2:
            return math.nan
        return math.sqrt(len(without) - 1) * float(np.std(without))

    @cached_property
    def _dimensions(self) -> tuple[float, int]:
        pin_blas()
        values, vectors = np.linalg.eigh(self.complete)
        kept = vectors[:, values > 1e-10 * values[-1]]
        left = (kept * (self.observed @ kept)).sum(axis=0) / values[-kept.shape[1] :]
        return kept.shape[1] - float(left.sum()), kept.shape[1]

    @property
    def steps(self) -> int:
        """T, the length of the segment."""
        return len(self.filtered[0].x)

    @property
    def code_entropy(self) -> float:
        """H_c: the average over time and passes of the filtering entropy of the switching code, in bits."""
        return float(np.mean([found.code_entropy.mean() for found in self.filtered]))

    @property
    def entropy_bound(self) -> float:
        """log2(particles), the most that ``code_entropy`` can show."""
        return self.filtered[0].entropy_bound

    @property
    def ess(self) -> float:
        """The average over time and passes of the effective sample size."""
        return float(np.mean([found.ess.mean() for found in self.filtered]))

    @property
    def log_evidence(self) -> float:
        """The log of the mean over passes of the estimates of the evidence, each of which is unbiased."""
        from scipy.special import logsumexp

        values = [found.log_evidence for found in self.filtered]
        return float(logsumexp(values) - math.log(len(values)))

    def __repr__(self) -> str:
        traces, error, config = self.traces, self.standard_errors, self.config
        states = f" x {config.states_per_path} states" if config.states == "sampled" else ""
        lines = [
            f"{type(self).__name__}(p={self.parameters}, {self.steps} steps, states={config.states!r}, "
            f"target={config.target!r}, {len(self.filtered)} passes x {config.paths} paths{states}:",
            f"  tr observed {traces['observed']:.4g} +- {error['observed']:.2g} = complete "
            f"{traces['complete']:.4g} - missing {traces['missing']:.4g}, MIR {self.mir:.3f}",
        ]
        if self.trace_missing_state is not None:
            split = f"state {self.trace_missing_state:.4g} + switching {self.trace_missing_switching:.4g}"
            lines.append(f"  missing = {split}")
        lines.append(
            f"  code entropy {self.code_entropy:.3f} of at most {self.entropy_bound:.2f} bits, "
            f"mean ESS {self.ess:.1f} of {config.particles})"
        )
        return "\n".join(lines)
