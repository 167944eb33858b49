"""The E-step: filter each window, draw smoothing samples, and add up what they say.

Every window has its own random streams, numbered by iteration and window, and sums are taken in the order of
the windows, so that the result does not depend on how many threads share the work.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.seeds import kernel_seed
from palrnn.inference import FilterDiedError, rbpf
from palrnn.inference.smoothing import drawn_paths
from palrnn.model import PALRNN
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.statistics import Statistics, sufficient_statistics


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the E-step found: statistics, evidence per step and dimension, and how many windows died."""

    statistics: Statistics
    evidence: float
    died: int


def window_expectation(
    model: PALRNN, x: Floats, config: SAEMConfig, seed: int, *stream: int
) -> tuple[Statistics, float] | None:
    """Return the statistics and the log evidence of one window ``x (L + 1, N)``; None if the filter died."""
    try:
        filtered = rbpf(
            model,
            x,
            particles=config.particles,
            seed=kernel_seed(seed, *stream, 0),
            target=config.target,
            resampling=config.resampling,
            ess_threshold=config.ess_threshold,
        )
        samples = drawn_paths(
            filtered,
            paths=config.paths,
            states_per_path=config.states_per_path,
            seed=kernel_seed(seed, *stream, 1),
            method="ancestors",
        )
    except FilterDiedError:
        return None
    statistics = sufficient_statistics(
        model.drift, x, samples.codes, samples.states, gate_likelihood=config.learn_gate_std
    )
    return statistics, filtered.log_evidence


def expectation(
    model: PALRNN, batch: Floats, config: SAEMConfig, seed: int, iteration: int, executor: Executor
) -> Expectation:
    """Return the E-step over a mini-batch of windows ``(B, L + 1, N)``."""
    jobs = [
        executor.submit(window_expectation, model, x, config, seed, 1, iteration, k)
        for k, x in enumerate(batch)
    ]
    try:
        found = [job.result() for job in jobs]
    except BaseException:
        for job in jobs:
            job.cancel()
        raise
    alive = [result for result in found if result is not None]
    if not alive:
        raise FilterDiedError(f"the filter died on all {len(batch)} windows of iteration {iteration + 1}")
    died = len(found) - len(alive)
    if died:
        warnings.warn(f"the filter died on {died} of {len(batch)} windows, which are left out", stacklevel=3)
    scale = (batch.shape[1] - 1) * batch.shape[2]
    evidence = float(np.mean([log_evidence for _, log_evidence in alive])) / scale
    return Expectation(_total(part for part, _ in alive), evidence, died)


def _total(parts: Iterable[Statistics]) -> Statistics:
    return reduce(add, parts)
