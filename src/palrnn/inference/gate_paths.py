"""Gate paths given all of the data: the filter's own, by tracing ancestors, or a chain of them, by sweeps."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.engine.vector_code import LANES
from palrnn.inference import reference_conditional, reference_smoothing
from palrnn.inference.config import SampleConfig
from palrnn.inference.filter_arrays import driven_arrays, filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels import conditional, smoothing
from palrnn.inference.path import empty_path
from palrnn.inference.path_arrays import aligned, padded, path_arrays
from palrnn.inference.record import FilterDiedError, Filtered, codes_of, words_of
from palrnn.model import ALRNN, PALRNN


class ConditionalFilter(Protocol):
    """The conditional particle filter with ancestor sampling of one series (see `kernels.conditional`)."""

    def sweep(self, path: Floats, key: int) -> Floats:
        """Return the path that follows ``path (T-1, P)`` in the chain, with the random stream ``key``.

        A path is an array of noisy gate inputs, of which the gates are the signs.
        """


def conditional_filter(
    model: PALRNN, x: Floats, particles: int, drive: Floats | None = None
) -> ConditionalFilter:
    """Return the conditional filter of ``model`` on ``x (T, N)``; two threads must not share one.

    ``drive (T, M)`` is C s_t, None without inputs.
    """
    return _conditional_filter(model.drift, model, x, particles, drive)


@singledispatch
def _conditional_filter(
    drift: Any, model: PALRNN, x: Floats, particles: int, drive: Floats | None
) -> ConditionalFilter:
    return reference_conditional.ConditionalFilter(model, x, particles, drive)


@_conditional_filter.register
def _(drift: ALRNN, model: PALRNN, x: Floats, particles: int, drive: Floats | None) -> ConditionalFilter:
    if not model.is_standard:
        return reference_conditional.ConditionalFilter(model, x, particles, drive)
    return FastConditionalFilter(model, x, particles, drive)


class FastConditionalFilter:
    """The conditional filter for AL-RNNs with diagonal noise, with room for the beliefs of its particles."""

    def __init__(self, model: PALRNN, x: Floats, particles: int, drive: Floats | None = None) -> None:
        latent, gated, steps = model.drift.latent_dim, model.drift.gated, len(x) - 1
        self._x, self._system, self._room = x, driven_arrays(filter_arrays(model), drive), workspace(model)
        self._start = initial_bundles(self._system, model, x[0], particles)
        self._mean, self._cov = (aligned(array.shape) for array in self._start)
        self._inputs = aligned((steps, len(self._start[0]), gated, LANES))
        self._ancestors = np.zeros((steps, particles), dtype=np.int32)
        self._padded, dim = path_arrays(model, drive), padded(latent)
        self._basis = aligned((dim, dim))
        self._basis[:latent, :latent] = self._system.basis
        self._messages = np.empty((steps, (latent + 1) * (latent + 2) // 2))

    def sweep(self, path: Floats, key: int) -> Floats:
        """Return the path that follows ``path (T-1, P)`` in the chain, with the random stream ``key``."""
        after = path.copy()
        conditional.path_messages(self._padded, self._basis, self._x, after, self._messages)
        self._mean[:], self._cov[:] = self._start
        lived = conditional.sweep(
            self._system,
            np.uint64(key),
            self._x,
            self._messages,
            self._mean,
            self._cov,
            self._room,
            self._inputs,
            self._ancestors,
            after,
        )
        if not lived:
            raise FilterDiedError(
                "all particles of the conditional filter died: the model explodes on this segment"
            )
        return after


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
    smoothing.trace(filtered.ancestors, last.astype(np.int64), lineages)
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
        smoothing.trace_inputs(system, np.uint64(filtered.key), x, lineage, words[s], *belief, inputs[s])
    return inputs


def gibbs_paths(filtered: Filtered, config: SampleConfig) -> GatePaths:
    """Return the chain of paths that one of the filter's own begins."""
    start = traced_paths(filtered, 1, config.seed).inputs[0]
    return chain_of_paths(filtered.model, filtered.x, start, config, drive=filtered.drive)


def chain_of_paths(
    model: PALRNN,
    x: Floats,
    start: Floats,
    config: SampleConfig,
    *,
    particles: int = PARTICLES,
    drive: Floats | None = None,
) -> GatePaths:
    """Return every ``config.sweeps``-th path of a chain of conditional filters from ``start (T-1, P)``.

    Particle Gibbs with ancestor sampling (Lindsten, Jordan and Schon, 2014). ``drive (T, M)`` is C s_t, None
    without inputs.
    """
    chain, path = conditional_filter(model, x, particles, drive), start
    inputs = np.empty((config.paths, *path.shape))
    keys = generator(config.seed, _SWEEPS).integers(
        0, 2**64, size=(config.paths, config.sweeps), dtype=np.uint64
    )
    for s, several in enumerate(keys):
        for key in several:
            path = chain.sweep(path, int(key))
        inputs[s] = path
    # a sweep keeps a draw of the path before it or makes a new one, which bears the number of its path
    made = np.zeros(inputs.shape[:2], dtype=np.int32)
    made[1:] = (inputs[1:] != inputs[:-1]).any(axis=2) * np.arange(1, config.paths, dtype=np.int32)[:, None]
    return GatePaths(inputs > 0, inputs, np.maximum.accumulate(made, axis=0))
