"""Gate paths given all of the data: the filter's own, by tracing ancestors, or a chain of them, by sweeps."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.inference import reference_smoothing
from palrnn.inference.codes import codes_of, words_of
from palrnn.inference.conditional import conditional_filter
from palrnn.inference.kernels import smoothing as kernels
from palrnn.inference.path import empty_path
from palrnn.inference.path_arrays import path_arrays
from palrnn.inference.record import Filtered
from palrnn.model import ALRNN, PALRNN

_PATHS, _SWEEPS = 0, 2
#: Particles of the conditional filter: two sweeps leave a correlation of 0.05 (200 steps, 10 gates).
PARTICLES = 16


class GatePaths(NamedTuple):
    """S gate paths: ``codes (S, T-1, P)``, ``inputs (S, T-1, P)`` and ``lineages (S, T-1)``.

    Inputs are the noisy gate inputs u, of which codes are the signs, or NaN under the paper's target.
    Lineages number the draws that make up a path: the same number at a time, the same draw.
    """

    codes: NDArray[np.bool_]
    inputs: Floats
    lineages: NDArray[np.int32]

    @property
    def distinct(self) -> NDArray[np.int64]:
        """How many different draws the paths pass through at each time, ``(T-1,)``."""
        ordered = np.sort(self.lineages, axis=0)
        return np.asarray(1 + (np.diff(ordered, axis=0) != 0).sum(axis=0), dtype=np.int64)


def traced_paths(filtered: Filtered, paths: int, seed: int) -> GatePaths:
    """Return final particles drawn by their weights, with their ancestors (Alg. rbpf-louis)."""
    weights = np.exp(filtered.log_weights)
    last = generator(seed, _PATHS).choice(filtered.particles, size=paths, p=weights / weights.sum())
    lineages = np.empty((paths, len(filtered.increments)), dtype=np.int32)
    kernels.trace(filtered.ancestors, last.astype(np.int64), lineages)
    words = filtered.code_words[np.arange(lineages.shape[1]), lineages]
    codes = codes_of(words, filtered.model.drift.gated)
    if filtered.target == "paper":
        return GatePaths(codes, np.full(codes.shape, np.nan), lineages)
    return GatePaths(codes, traced_inputs(filtered.model.drift, filtered, lineages, codes), lineages)


@singledispatch
def traced_inputs(
    drift: Any, filtered: Filtered, lineages: NDArray[np.int32], codes: NDArray[np.bool_]
) -> Floats:
    """Return the inputs ``(S, T-1, P)`` that a filter with the exact target drew along ``lineages (S, T-1)``.

    `reference_smoothing`, unless something is registered for this kind of ``drift``.
    """
    return reference_smoothing.traced_inputs(filtered, lineages, codes)


@traced_inputs.register
def _(drift: ALRNN, filtered: Filtered, lineages: NDArray[np.int32], codes: NDArray[np.bool_]) -> Floats:
    model, x = filtered.model, filtered.x
    if not model.is_standard:
        return reference_smoothing.traced_inputs(filtered, lineages, codes)
    inputs, words = np.empty(codes.shape), words_of(codes)
    system, start = path_arrays(model, filtered.drive), empty_path(model, x[:2])
    for s, lineage in enumerate(lineages):
        belief = start.filtered_mean[0].copy(), start.filtered_cov[0].copy()
        kernels.trace_inputs(system, np.uint64(filtered.key), x, lineage, words[s], *belief, inputs[s])
    return inputs


def gibbs_paths(filtered: Filtered, paths: int, sweeps: int, seed: int) -> GatePaths:
    """Return the chain of paths that one of the filter's own begins."""
    start = traced_paths(filtered, 1, seed).inputs[0]
    return chain_of_paths(filtered.model, filtered.x, start, paths, sweeps, seed, drive=filtered.drive)


def chain_of_paths(
    model: PALRNN,
    x: Floats,
    start: Floats,
    paths: int,
    sweeps: int,
    seed: int,
    *,
    particles: int = PARTICLES,
    drive: Floats | None = None,
) -> GatePaths:
    """Return every ``sweeps``-th path of a chain of conditional filters that ``start (T-1, P)`` begins.

    Particle Gibbs with ancestor sampling (Lindsten, Jordan and Schon, 2014). ``drive (T, M)`` is C s_t, None
    without inputs.
    """
    chain, path = conditional_filter(model, x, particles, drive), start
    inputs = np.empty((paths, *path.shape))
    keys = generator(seed, _SWEEPS).integers(0, 2**64, size=(paths, sweeps), dtype=np.uint64)
    for s, several in enumerate(keys):
        for key in several:
            path = chain.sweep(path, int(key))
        inputs[s] = path
    # a sweep keeps a draw of the path before it or makes a new one, which bears the number of its path
    made = np.zeros(inputs.shape[:2], dtype=np.int32)
    made[1:] = (inputs[1:] != inputs[:-1]).any(axis=2) * np.arange(1, paths, dtype=np.int32)[:, None]
    return GatePaths(inputs > 0, inputs, np.maximum.accumulate(made, axis=0))
