"""The paper's estimator: Louis' identity from samples of gates and states (Alg. rbpf-louis).

Its missing information has rank S K - 1 for S paths with K states each; with the paper's eight samples it
leaves directions negative that have most of their information, and turns the leading ones. It stays because
the paper's numbers are made of it (`GeometryConfig.paper`); `exact` needs no states.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.progress import Progress, quiet
from palrnn.engine.seeds import kernel_seed
from palrnn.geometry.config import InformationConfig
from palrnn.geometry.information import IndefiniteInformationWarning, ObservedInformation
from palrnn.geometry.louis import LouisTerms, gathered_terms
from palrnn.inference import Filtered, rbpf
from palrnn.inference.smoothing import drawn_paths
from palrnn.model import PALRNN

# sampled states held at once, in numbers: 256 MB
_BATCH = 32_000_000


@dataclass(frozen=True, eq=False, repr=False)
class SampledInformation(ObservedInformation):
    """The observed information from sampled states: the mean over passes of ``terms``, one for each."""

    config: InformationConfig
    filtered: tuple[Filtered, ...]
    distinct: NDArray[np.int64]
    terms: tuple[LouisTerms, ...]

    @property
    def parameters(self) -> int:
        """p, the number of drift parameters."""
        return int(self.terms[0].scores.shape[2])

    @property
    def samples(self) -> int:
        """S K, the number of sampled (code, state) trajectories of each pass."""
        return self.terms[0].samples

    @property
    def score(self) -> Floats:
        """The mean complete-data score ``(p,)``."""
        return np.mean([part.score for part in self.terms], axis=0)

    @cached_property
    def complete(self) -> Floats:
        """E[I_comp | x], ``(p, p)``."""
        return _mean([part.complete for part in self.terms])

    @cached_property
    def observed(self) -> Floats:
        """E[I_comp | x] - Cov(s | x), ``(p, p)``."""
        return _mean([part.observed for part in self.terms])

    @property
    def missing_switching(self) -> Floats | None:
        """Cov_c E(s | c), ``(p, p)``; None where each path has one state."""
        found = [part.missing_switching for part in self.terms]
        return None if found[0] is None else _mean([part for part in found if part is not None])

    @cached_property
    def traces(self) -> dict[str, float]:
        """The traces of all parts by name, and ``mir``."""
        parts = [part.traces for part in self.terms]
        return {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}

    @property
    def leave_one_out(self) -> tuple[SampledInformation, ...]:
        """The same without each of the passes."""
        if len(self.terms) < 2:
            return ()
        rest = [np.delete(np.arange(len(self.terms)), r) for r in range(len(self.terms))]
        return tuple(
            SampledInformation(
                self.config,
                tuple(self.filtered[r] for r in kept),
                self.distinct,
                tuple(self.terms[r] for r in kept),
            )
            for kept in rest
        )

    def product(self, v: Floats) -> Floats:
        """Return the product of ``observed`` with ``v (p,)``."""
        return np.mean([part @ v for part in self.terms], axis=0)

    @property
    def needed_samples(self) -> int:
        """The least number of samples with which ``observed`` could be positive; often it takes far more."""
        return max(part.needed_samples for part in self.terms)

    @cached_property
    def _dimensions(self) -> tuple[float, int]:
        missing = float(np.mean([part.missing_dimensions for part in self.terms]))
        return missing, self.terms[0].informed_dimensions


def sampled_information(
    model: PALRNN,
    x: Floats,
    config: InformationConfig,
    progress: Progress = quiet,
    inputs: Floats | None = None,
) -> SampledInformation:
    """Filter ``x`` and sample paths and states, ``config.passes`` times.

    Warns with `IndefiniteInformationWarning` where the number of samples cannot make the estimate positive.
    """
    passes, terms, distinct = [], [], np.zeros(len(x) - 1, dtype=np.int64)
    for number in range(config.passes):
        settings = config.filter_config(number)
        filtered = rbpf(model, x, settings, inputs=inputs)
        lineages: list[NDArray[np.int32]] = []

        batches = _batches(
            filtered, config, settings.seed, lineages, _part_of(progress, number, config.passes)
        )
        terms.append(gathered_terms(model, config.paths, batches, inputs))
        passes.append(filtered)
        distinct += [len(np.unique(column)) for column in np.concatenate(lineages).T]
    result = SampledInformation(config, tuple(passes), distinct, tuple(terms))
    if result.samples < result.needed_samples:
        warnings.warn(_too_few(result), IndefiniteInformationWarning, stacklevel=3)
    return result


def _batches(
    filtered: Filtered,
    config: InformationConfig,
    seed: int,
    lineages: list[NDArray[np.int32]],
    progress: Progress,
) -> Iterator[tuple[NDArray[np.bool_], Floats]]:
    """Yield codes and states in batches of bounded size, keeping the lineages."""
    paths, draws = config.paths, config.states_per_path
    size = max(1, _BATCH // (draws * filtered.mean.size))
    for batch, done in enumerate(range(0, paths, size)):
        # one batch, the usual case, draws what `smooth` would with the same seed
        stream = seed if paths <= size else kernel_seed(seed, "paths", batch)
        samples = drawn_paths(filtered, config.sample_config(stream).changed(paths=min(size, paths - done)))
        lineages.append(samples.lineages)
        yield samples.codes, samples.states
        progress(min(done + size, paths), paths, {})


def _part_of(progress: Progress, number: int, count: int) -> Progress:
    """Return what reports on one of ``count`` equal parts of some work."""
    return lambda done, total, figures: progress(number * total + done, count * total, figures)


def _mean(matrices: list[Floats]) -> Floats:
    return matrices[0] if len(matrices) == 1 else np.mean(matrices, axis=0)


def _too_few(result: SampledInformation) -> str:
    missing, informed = result.missing_dimensions, result.informed_dimensions
    why = f"{missing:.0f} of {informed} directions' worth is missing"
    if missing >= informed:
        why += " (more than there is, so the log evidence may not be concave here at all)"
    return (
        f"{result.samples} samples cannot make the observed information positive: {why}; "
        f"it takes at least {result.needed_samples}; states='exact' needs none"
    )
