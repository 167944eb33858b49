"""`smooth`: gate paths and states drawn given all of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats, as_int
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.inference import reference_smoothing
from palrnn.inference.codes import codes_of, words_of
from palrnn.inference.fast_filter import TARGETS
from palrnn.inference.kernels import smoothing as kernels
from palrnn.inference.path import empty_path
from palrnn.inference.record import FilterDiedError, Filtered
from palrnn.inference.system import padded_system
from palrnn.model import ALRNN

_PATHS, _STATES = 0, 1
# numbers in the covariances that plain walks hold at once: a few of 64 MB
_WALKED = 8_000_000
# products of four states, as in the squares of scores, overflow beyond
_BEYOND = 1e60


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Draws from the smoothing distribution: S gate paths, K state trajectories for each.

    - ``codes (S, T-1, P)``: the gates of each path
    - ``states (S, K, T, M)``: states given the path and all data
    - ``distinct (T-1,)``: how many different paths there are up to each time; tracing ancestors coalesces, so
      that early gates may come from few particles or one
    - ``lineages (S, T-1)``: the particles that make up each path
    """

    codes: NDArray[np.bool_] = field(repr=False)
    states: Floats = field(repr=False)
    distinct: NDArray[np.int64]
    lineages: NDArray[np.int32] = field(repr=False)

    def __repr__(self) -> str:
        paths, draws, times, latent = self.states.shape
        return (
            f"Smoothed({paths} paths x {draws} states, {times} times, {latent} units; "
            f"distinct paths: {self.distinct[0]} at the first step, {self.distinct[-1]} at the last)"
        )


def smooth(filtered: Filtered, *, paths: int = 8, states_per_path: int = 1, seed: int = 0) -> Smoothed:
    """Draw gate paths by tracing ancestors from the final weights, and states from the Gaussian smoother
    given each.

    The filter keeps no covariances: the Kalman filter is run again along each path, once for the part that
    paths have in common. States of one path share its gains and factors, so that each costs little more than
    a matrix-vector product per step. Where the model explodes and covariances cannot be factored any more, a
    `FilterDiedError` says so.
    """
    paths = as_int(paths, "paths", least=1)
    draws = as_int(states_per_path, "states_per_path", least=1)
    if not isinstance(filtered, Filtered):
        raise ValueError(f"filtered must be what rbpf returns, got {type(filtered).__name__}")
    pin_blas()
    lineages = drawn_lineages(filtered, paths, seed)
    words = filtered.code_words[np.arange(lineages.shape[1]), lineages]
    codes = codes_of(words, filtered.model.drift.gated)
    times, latent = filtered.mean.shape
    noise = np.empty((paths, draws, times, latent))
    for s in range(paths):
        generator(seed, _STATES, s).standard_normal(out=noise[s])
    states = states_given_paths(filtered.model.drift, filtered, lineages, codes, noise)
    if not (np.abs(states) < _BEYOND).all():
        raise FilterDiedError(
            "the states given a gate path are beyond all bounds, and their covariances no longer positive"
            " definite: the model explodes on this segment"
        )
    distinct = np.array([len(np.unique(column)) for column in lineages.T], dtype=np.int64)
    return Smoothed(codes, states, distinct, lineages)


@singledispatch
def states_given_paths(
    drift: Any, filtered: Filtered, lineages: NDArray[np.int32], codes: NDArray[np.bool_], noise: Floats
) -> Floats:
    """Return states drawn given each path, made of standard normal ``noise (S, K, T, M)``, which is used up.

    ``lineages (S, T-1)`` are the slots of the filter that each path runs through, ``codes (S, T-1, P)`` its
    gates. `reference_smoothing`, unless something is registered for this kind of ``drift``.
    """
    size = max(1, _WALKED // (noise.shape[2] * noise.shape[3] ** 2))
    for first in range(0, len(noise), size):
        some = slice(first, first + size)
        walk = reference_smoothing.walk_of(filtered, lineages[some], codes[some])
        noise[some] = reference_smoothing.sampled_states(walk, noise[some])
    return noise


@states_given_paths.register
def _(
    drift: ALRNN, filtered: Filtered, lineages: NDArray[np.int32], codes: NDArray[np.bool_], noise: Floats
) -> Floats:
    model, x = filtered.model, filtered.x
    if not model.is_standard:
        return states_given_paths.dispatch(object)(drift, filtered, lineages, codes, noise)
    steps, words = lineages.shape[1], words_of(codes)
    system, room = padded_system(model), empty_path(model, x)
    before = np.full(steps, -1, dtype=np.int32)
    for s in np.lexsort(lineages.T[::-1]):
        shared = _shared(before, lineages[s])
        if shared < steps:
            kernels.walk(
                system,
                TARGETS[filtered.target],
                np.uint64(filtered.key),
                x,
                lineages[s],
                words[s],
                shared,
                room,
            )
        kernels.sample_states(room, noise[s])
        before = lineages[s]
    return noise


def drawn_lineages(filtered: Filtered, paths: int, seed: int) -> NDArray[np.int32]:
    """Return ``(S, T-1)`` slots: final particles drawn by their weights, with their ancestors."""
    weights = np.exp(filtered.log_weights)
    last = generator(seed, _PATHS).choice(filtered.particles, size=paths, p=weights / weights.sum())
    lineages = np.empty((paths, len(filtered.increments)), dtype=np.int32)
    kernels.trace(filtered.ancestors, last.astype(np.int64), lineages)
    return lineages


def _shared(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Return how many steps two lineages have in common from the start."""
    differs = one != other
    return int(differs.argmax()) if differs.any() else len(one)
