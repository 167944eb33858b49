"""The curvature that the marginal likelihood sees: filter, smooth, and apply Louis' identity."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_int
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.engine.seeds import kernel_seed
from palrnn.geometry.louis import LouisTerms, gathered_terms
from palrnn.inference import Filtered, rbpf, smooth
from palrnn.model import PALRNN

# sampled states held at once, in numbers: 256 MB
_BATCH = 32_000_000


class IndefiniteInformationWarning(UserWarning):
    """Too few samples: the estimate of the observed information must have negative directions."""


@dataclass(frozen=True, eq=False)
class ObservedInformation(LouisTerms):
    """The observed information of one segment, its parts, and how the filter fared.

    Matrices ``(p, p)`` over [A, W row-major, h] of the whole segment (divide by T for the per-step scale):
    ``observed = complete - missing`` and, with several states per path, ``missing = missing_state +
    missing_switching``. Their traces need no matrix. ``filtered`` is the pass of the filter, ``distinct
    (T-1,)`` the number of different gate paths up to each time: where it is 1, the switching part sees no
    ambiguity.
    """

    filtered: Filtered = field(repr=False)
    distinct: NDArray[np.int64] = field(repr=False)

    @property
    def steps(self) -> int:
        """T, the length of the segment."""
        return len(self.filtered.x)

    @property
    def code_entropy(self) -> float:
        """H_c: the time average of the filtering entropy of the switching code, in bits."""
        return float(self.filtered.code_entropy.mean())

    @property
    def ess(self) -> float:
        """The time average of the effective sample size."""
        return float(self.filtered.ess.mean())

    def __repr__(self) -> str:
        paths, draws, size = self.scores.shape
        error = self.standard_errors
        lines = [
            f"ObservedInformation(p={size}, {self.steps} steps, {paths} paths x {draws} states, "
            f"target={self.filtered.target!r}:",
            f"  tr observed {self.trace_observed:.4g} +- {error['observed']:.2g} = complete "
            f"{self.trace_complete:.4g} - missing {self.trace_missing:.4g}, MIR {self.mir:.3f}",
            f"  code entropy {self.code_entropy:.3f} of at most {self.filtered.entropy_bound:.2f} bits, "
            f"mean ESS {self.ess:.1f} of {self.filtered.particles})",
        ]
        if self.trace_missing_state is not None:
            split = f"state {self.trace_missing_state:.4g} + switching {self.trace_missing_switching:.4g}"
            lines.insert(2, f"  missing = {split}")
        return "\n".join(lines)


def observed_information(
    model: PALRNN,
    x: ArrayLike,
    *,
    particles: int = 64,
    paths: int = 8,
    states_per_path: int = 1,
    target: str = "paper",
    seed: int = 0,
    resampling: str = "multinomial",
    ess_threshold: float = 0.5,
    progress: Progress | None = quiet,
) -> ObservedInformation:
    """Estimate the observed information of the drift on a segment ``x (T, N)`` (Alg. rbpf-louis).

    ``paths`` gate paths are drawn from a filter with ``particles`` particles, and ``states_per_path``
    states for each. States of one path are cheap; more than one also splits the missing information by its
    cause. The rest of the arguments are those of `rbpf`.

    Warns with `IndefiniteInformationWarning` where the number of samples cannot make the estimate positive.
    """
    paths = as_int(paths, "paths", least=2)
    draws = as_int(states_per_path, "states_per_path", least=1)
    filtered = rbpf(
        model,
        x,
        particles=particles,
        seed=seed,
        target=target,
        resampling=resampling,
        ess_threshold=ess_threshold,
    )
    sampled: list[NDArray[np.int32]] = []

    def batches(report: Progress) -> Iterator[tuple[NDArray[np.bool_], Floats]]:
        size = max(1, _BATCH // (draws * len(filtered.x) * model.drift.latent_dim))
        for batch, done in enumerate(range(0, paths, size)):
            # one batch, the usual case, draws what `smooth` would with the same seed
            stream = seed if paths <= size else kernel_seed(seed, "paths", batch)
            samples = smooth(filtered, paths=min(size, paths - done), states_per_path=draws, seed=stream)
            sampled.append(samples.lineages)
            yield samples.codes, samples.states
            report(min(done + size, paths), paths, {})

    with listening(progress, "smoothing") as report:
        terms = gathered_terms(model, paths, batches(report))
    lineages = np.concatenate(sampled)
    distinct = np.array([len(np.unique(column)) for column in lineages.T], dtype=np.int64)
    parts = (terms.blocks, terms.scores, terms.complete_traces, terms.groups)
    result = ObservedInformation(*parts, filtered, distinct)
    if result.samples < result.needed_samples:
        warnings.warn(_too_few(result), IndefiniteInformationWarning, stacklevel=2)
    return result


def _too_few(result: ObservedInformation) -> str:
    missing, informed = result.missing_dimensions, result.informed_dimensions
    why = f"{missing:.0f} of {informed} directions' worth is missing"
    if missing >= informed:
        why += " (more than there is, so the log evidence may not be concave here at all)"
    return (
        f"{result.samples} samples cannot make the observed information positive: {why}; "
        f"it takes at least {result.needed_samples} (raise paths or states_per_path)"
    )
