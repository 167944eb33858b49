"""The E-step: draw gate paths and states of each window given its data, and add up what they say.

Every window has its own random streams, numbered by iteration and window, and sums are taken in the order of
the windows, so that the result does not depend on how many threads share the work.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import kernel_seed
from palrnn.inference import FilterDiedError, Filtered, rbpf
from palrnn.inference.gate_paths import chain_of_paths, traced_paths
from palrnn.inference.smoothing import drawn_paths, drawn_states
from palrnn.model import PALRNN
from palrnn.model.inputs import offsets
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.statistics import Statistics, sufficient_statistics


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the E-step found: statistics, evidence per step and dimension, and how many windows died.

    The evidence is NaN where no filter estimates it; ``paths (B, L, P)`` are those that a conditional filter
    goes on from, NaN otherwise.
    """

    statistics: Statistics
    evidence: float
    died: int
    paths: Floats


class Window(NamedTuple):
    """What one window says: its statistics, log evidence, and the path to go on from."""

    statistics: Statistics
    log_evidence: float
    path: Floats


def window_expectation(
    model: PALRNN,
    x: Floats,
    config: SAEMConfig,
    path: Floats,
    seed: int,
    *stream: int,
    inputs: Floats | None = None,
) -> Window | None:
    """Return what one window ``x (L + 1, N)`` says, with ``inputs (L + 1, K)``; None if the filter died.

    ``path (L, P)`` is where a conditional filter goes on from, NaN before its first draw.
    """
    try:
        if config.smoother == "conditional" and model.drift.gated:
            return _conditional_window(model, x, inputs, config, path, seed, *stream)
        filtered = _filtered(model, x, inputs, config, kernel_seed(seed, *stream, 0))
        sampling = config.sample_config.changed(seed=kernel_seed(seed, *stream, 1))
        if not model.drift.gated:
            sampling = sampling.changed(method="ancestors")
        samples = drawn_paths(filtered, sampling)
    except FilterDiedError:
        return None
    statistics = sufficient_statistics(
        model, x, samples.codes, samples.states, inputs=inputs, gate_likelihood=config.learn_gate_std
    )
    return Window(statistics, filtered.log_evidence, path)


def _conditional_window(
    model: PALRNN,
    x: Floats,
    inputs: Floats | None,
    config: SAEMConfig,
    path: Floats,
    seed: int,
    *stream: int,
) -> Window:
    """Go on from ``path`` by sweeps of a conditional filter (CPF-AS; Lindsten, 2013)."""
    pin_blas()
    if np.isnan(path).any():
        filtered = _filtered(model, x, inputs, config, kernel_seed(seed, *stream, 0))
        path = traced_paths(filtered, 1, kernel_seed(seed, *stream, 1)).inputs[0]
    drive = offsets(model, inputs)
    chain, given = (config.sample_config.changed(seed=kernel_seed(seed, *stream, k)) for k in (2, 1))
    paths = chain_of_paths(model, x, path, chain, particles=config.particles, drive=drive)
    states = drawn_states(model, x, paths, given, drive)
    statistics = sufficient_statistics(
        model, x, paths.codes, states, inputs=inputs, gate_likelihood=config.learn_gate_std
    )
    return Window(statistics, math.nan, paths.inputs[-1])


def _filtered(model: PALRNN, x: Floats, inputs: Floats | None, config: SAEMConfig, seed: int) -> Filtered:
    return rbpf(model, x, config.filter_config, inputs=inputs, seed=seed)


def expectation(
    model: PALRNN,
    batch: Floats,
    config: SAEMConfig,
    stream: tuple[int, ...],
    executor: Executor,
    paths: Floats,
    inputs: Floats | None = None,
) -> Expectation:
    """Return the E-step over windows ``batch (B, L + 1, N)``, whose paths so far are ``paths (B, L, P)``.

    ``stream`` is the seed, and the numbers of a random stream of it; ``inputs (B, L + 1, K)`` are those of
    the windows of a driven model.
    """
    given = [None] * len(batch) if inputs is None else list(inputs)
    jobs = [
        executor.submit(window_expectation, model, x, config, path, *stream, k, inputs=given[k])
        for k, (x, path) in enumerate(zip(batch, paths, strict=True))
    ]
    try:
        found = [job.result() for job in jobs]
    except BaseException:
        for job in jobs:
            job.cancel()
        raise
    alive = [window for window in found if window is not None]
    if not alive:
        raise FilterDiedError(f"the filter died on all {len(batch)} windows of iteration {stream[-1] + 1}")
    died = len(found) - len(alive)
    if died:
        warnings.warn(f"the filter died on {died} of {len(batch)} windows, which are left out", stacklevel=3)
    scale = (batch.shape[1] - 1) * batch.shape[2]
    evidence = float(np.mean([window.log_evidence for window in alive])) / scale
    # a path on which the filter died is not gone on from
    after = [np.nan * paths[k] if window is None else window.path for k, window in enumerate(found)]
    return Expectation(_total(window.statistics for window in alive), evidence, died, np.array(after))


def _total(parts: Iterable[Statistics]) -> Statistics:
    return reduce(add, parts)
