"""The observed information, exact given the gates: only gate paths are sampled.

    I_obs = E_c[ I(c) ] - Cov_c(E[s | c]),     I(c) = E[I_comp | c] - Cov(s | c) = -d^2 log p(x | c) /
    dtheta^2

by the law of total covariance. The first term is an average of closed forms (`path_information`), the second
the covariance of exact scores over the paths. Paths of one pass of the filter have ancestors in common, so
that their covariance is too small. What they have in common differs between passes, and

    Cov_c = mean over passes of (covariance within, divisor S) + covariance of the means (divisor R - 1)

is unbiased however the S paths of each of R passes depend on each other, if each of them is a fair draw.

Scores and tr E[I_comp | c] cost little and are computed for all paths, I(c) for a few. Both traces vary
nearly in proportion over the paths (a correlation of 0.99 on the models of the paper), so that the few are
scaled by tr E[I_comp | c] of all over that of the few: a ratio estimate, whose bias is far below its error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, quiet
from palrnn.geometry.config import InformationConfig
from palrnn.geometry.information import ObservedInformation
from palrnn.geometry.path_information import PathInformation, informed_path
from palrnn.geometry.path_moments import explosion
from palrnn.inference import Filtered, rbpf
from palrnn.inference.smoothing import drawn_gates
from palrnn.model import PALRNN

# moments of paths that are kept between products with vectors, in numbers: 256 MB
_KEPT = 32_000_000


@dataclass(frozen=True, eq=False)
class GatePass:
    """One pass of the filter and its S gate paths.

    ``codes (S, T-1, P)``, ``gate_inputs (S, T-1, P)`` under the exact target, ``scores (S, p)``: E[s | path,
    x], ``complete_traces (S,)``: tr E[I_comp | path, x], ``distinct (T-1,)``: different particles that the
    paths pass through. The first ``state_paths`` of them speak for the information given a path.
    """

    filtered: Filtered = field(repr=False)
    codes: NDArray[np.bool_] = field(repr=False)
    gate_inputs: Floats | None = field(repr=False)
    scores: Floats = field(repr=False)
    complete_traces: Floats = field(repr=False)
    distinct: NDArray[np.int64] = field(repr=False)
    state_paths: int
    lags: int | None

    def paths(self) -> Iterator[PathInformation]:
        """Yield the paths that speak for the information given a path."""
        found = self.filtered
        for codes, given in self._given(slice(self.state_paths)):
            yield informed_path(found.model, found.x, codes, given, found.inputs)

    def _given(self, some: slice) -> Iterator[tuple[NDArray[np.bool_], Floats | None]]:
        given = [None] * len(self.codes) if self.gate_inputs is None else list(self.gate_inputs)
        return zip(self.codes[some], given[some], strict=True)

    @cached_property
    def kept_paths(self) -> list[PathInformation] | None:
        """Those paths, to be used many times; None where they would take too much memory."""
        times, dim = self.filtered.mean.shape
        return list(self.paths()) if 5 * self.state_paths * times * dim**2 < _KEPT else None

    @property
    def weight(self) -> float:
        """What a sum over those paths is multiplied by: their number's inverse, scaled to all paths."""
        few = self.complete_traces[: self.state_paths]
        return float(self.complete_traces.mean() / few.mean()) / self.state_paths

    @cached_property
    def matrices(self) -> tuple[Floats, Floats]:
        """The mean over those paths of complete and observed information, each ``(p, p)``, scaled."""
        size = self.scores.shape[1]
        complete, observed = np.zeros((size, size)), np.zeros((size, size))
        for path in self.paths():
            complete += self.weight * path.complete
            observed += self.weight * path.observed
        return complete, observed

    @cached_property
    def traces(self) -> tuple[float, float]:
        """The traces of both ``matrices``, without building them."""
        if "matrices" in self.__dict__ and self.lags is None:
            return float(np.trace(self.matrices[0])), float(np.trace(self.matrices[1]))
        observed = sum(path.trace_observed(self.lags) for path in self.paths())
        return float(self.complete_traces.mean()), self.weight * observed

    @cached_property
    def left_out(self) -> float:
        """A bound on what ``lags`` leaves out of the trace of the observed information."""
        if self.lags is None:
            return 0.0
        return self.weight * sum(path.left_out(self.lags) for path in self.paths())

    def product(self, v: Floats) -> Floats:
        """Return the product of the mean observed information given a path with ``v (p,)``."""
        total = np.zeros_like(v)
        for path in self.kept_paths or self.paths():
            total += path @ v
        return self.weight * total


@dataclass(frozen=True, eq=False, repr=False)
class ExactInformation(ObservedInformation):
    """The observed information, exact given the gates (see the module)."""

    config: InformationConfig
    passes: tuple[GatePass, ...]

    @property
    def filtered(self) -> tuple[Filtered, ...]:  # type: ignore[override]
        """The passes of the filter."""
        return tuple(part.filtered for part in self.passes)

    @property
    def distinct(self) -> NDArray[np.int64]:  # type: ignore[override]
        """Different particles that the paths pass through at each time, over all passes, ``(T-1,)``."""
        return np.sum([part.distinct for part in self.passes], axis=0)

    @property
    def parameters(self) -> int:
        """p, the number of drift parameters."""
        return int(self.passes[0].scores.shape[1])

    @property
    def score(self) -> Floats:
        """The mean over paths of E[s | path, x], ``(p,)``."""
        return np.mean([part.scores.mean(axis=0) for part in self.passes], axis=0)

    @cached_property
    def complete(self) -> Floats:
        """E[I_comp | x], ``(p, p)``."""
        return self._mean(0)

    @cached_property
    def observed(self) -> Floats:
        """E_c[I(c)] - Cov_c(E[s | c]), ``(p, p)``."""
        return self._mean(1) - self.missing_switching

    @property
    def missing_switching(self) -> Floats:
        """Cov_c(E[s | c]), ``(p, p)``."""
        pin_blas()
        return np.asarray(self._factor.T @ self._factor)

    def _mean(self, which: int) -> Floats:
        total = np.zeros((self.parameters, self.parameters))
        for part in self.passes:
            total += part.matrices[which]
        return total / len(self.passes)

    @cached_property
    def _factor(self) -> Floats:
        """F with missing_switching = F^T F: scores less the mean of their pass, these means less theirs."""
        means = np.stack([part.scores.mean(axis=0) for part in self.passes])
        count, paths = len(self.passes), self.config.paths
        # one pass alone knows only what differs within it
        divisor = count * paths if count > 1 else max(1, paths - 1)
        rows = [part.scores - mean for part, mean in zip(self.passes, means, strict=True)]
        within = np.concatenate(rows) / math.sqrt(divisor)
        return np.concatenate([within, (means - means.mean(axis=0)) / math.sqrt(max(1, count - 1))])

    @cached_property
    def traces(self) -> dict[str, float]:
        """The traces of all parts by name, and ``mir``."""
        complete, given = np.mean([part.traces for part in self.passes], axis=0)
        switching = float((self._factor**2).sum())
        observed = float(given) - switching
        return {
            "complete": float(complete),
            "missing": float(complete) - observed,
            "observed": observed,
            "mir": 1.0 - observed / float(complete),
            "missing_state": float(complete - given),
            "missing_switching": switching,
        }

    @property
    def left_out(self) -> float:
        """A bound on what ``lags`` leaves out of ``trace_observed``; 0 where nothing is left out."""
        return float(np.mean([part.left_out for part in self.passes]))

    @cached_property
    def leave_one_out(self) -> tuple[ExactInformation, ...]:
        """The same without each of the passes."""
        if len(self.passes) < 2:
            return ()
        rest = [self.passes[:r] + self.passes[r + 1 :] for r in range(len(self.passes))]
        return tuple(replace(self, passes=passes) for passes in rest)

    def error_of(self, without: Sequence[float]) -> float:
        """Return the standard error of a figure, given its values for all of ``leave_one_out``.

        It is 0 without gates, when all is exact.
        """
        return super().error_of(without) if self.filtered[0].model.drift.gated else 0.0

    def build(self, progress: Progress = quiet) -> None:
        """Build the matrices of all passes now, and report on it."""
        for number, part in enumerate(self.passes):
            progress(number + 1, len(self.passes), {"trace": float(np.trace(part.matrices[1]))})

    def product(self, v: Floats) -> Floats:
        """Return the product of ``observed`` with ``v (p,)``."""
        given = np.mean([part.product(v) for part in self.passes], axis=0)
        return np.asarray(given - self._factor.T @ (self._factor @ v))


def exact_information(
    model: PALRNN,
    x: Floats,
    config: InformationConfig,
    progress: Progress = quiet,
    inputs: Floats | None = None,
) -> ExactInformation:
    """Filter ``x`` and draw gate paths, ``config.passes`` times; return the information of their mixture."""
    if model.drift.gated == 0:
        # there is one path, and all is known about it
        config = config.changed(passes=1, paths=2, state_paths=1)
    parts = []
    for number in range(config.passes):
        parts.append(_gate_pass(model, x, inputs, config, number))
        progress(number + 1, config.passes, {"log_evidence": parts[-1].filtered.log_evidence})
    return ExactInformation(config, tuple(parts))


def _gate_pass(
    model: PALRNN, x: Floats, inputs: Floats | None, config: InformationConfig, number: int
) -> GatePass:
    settings = config.filter_config(number)
    filtered = rbpf(model, x, settings, inputs=inputs)
    samples, _ = drawn_gates(filtered, config.sample_config(settings.seed))
    gate_inputs = samples.inputs if config.target == "exact" else None
    known: dict[bytes, tuple[Floats, float]] = {}
    keys = []
    for s, codes in enumerate(samples.codes):
        given = None if gate_inputs is None else gate_inputs[s]
        keys.append(np.packbits(codes).tobytes() if given is None else given.tobytes())
        if keys[-1] not in known:
            path = informed_path(model, x, codes, given, inputs)
            known[keys[-1]] = path.score, path.trace_complete
    scores, complete = (np.array([known[key][i] for key in keys]) for i in (0, 1))
    if not np.abs(scores).max(initial=0.0) < 1e150:  # their products would overflow
        raise explosion()
    state_paths = min(config.state_paths, config.paths)
    return GatePass(
        filtered, samples.codes, gate_inputs, scores, complete, samples.distinct, state_paths, config.lags
    )
