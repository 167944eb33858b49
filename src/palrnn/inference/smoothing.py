"""`smooth`: gate paths and states drawn given all of the data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats, as_int, one_of
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.inference import smoothing_kernels as kernels
from palrnn.inference.conditional import ConditionalFilter
from palrnn.inference.particle_filter import FilterDiedError, Filtered
from palrnn.inference.path import empty_path, packed_codes, unpacked_codes
from palrnn.inference.system import padded_system

_PATHS, _STATES, _SWEEPS = 0, 1, 2
# products of four states, as in the squares of scores, overflow beyond
_BEYOND = 1e60
# different paths beyond which a covariance over them is fair
_ENOUGH = 64
# particles of the conditional filter: two sweeps with 16 leave a correlation of 0.05 between neighbouring
# paths
_CONDITIONAL = 16
METHODS = ("ancestors", "gibbs")


class FewPathsWarning(UserWarning):
    """Paths have much in common: what varies over gate paths comes out too small."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Draws from the smoothing distribution: S gate paths, K state trajectories for each.

    - ``codes (S, T-1, P)``: the gates of each path
    - ``inputs (S, T-1, P)``: the noisy gate inputs u, of which the codes are the signs; NaN under the paper's
      target, which does not condition on them
    - ``states (S, K, T, M)``: states given the path and all data
    - ``lineages (S, T-1)``: numbers for the draws that make up each path, the same for the same draw
    - ``distinct (T-1,)``: how many different draws the paths pass through at each time
    - ``method``: how the paths were drawn
    """

    codes: NDArray[np.bool_] = field(repr=False)
    inputs: Floats = field(repr=False)
    states: Floats = field(repr=False)
    lineages: NDArray[np.int32] = field(repr=False)
    distinct: NDArray[np.int64]
    method: str

    def __repr__(self) -> str:
        paths, draws, times, latent = self.states.shape
        return (
            f"Smoothed({paths} paths x {draws} states by {self.method!r}, {times} times, {latent} units; "
            f"at least {self.distinct.min()} paths differ at any step)"
        )


def smooth(
    filtered: Filtered,
    *,
    paths: int = 8,
    states_per_path: int = 1,
    seed: int = 0,
    method: str | None = None,
    sweeps: int = 2,
) -> Smoothed:
    """Draw gate paths given all of the data, and states from the Gaussian smoother given each.

    ``method="ancestors"``, the paper's, traces the ancestors of final particles. It coalesces: the early part
    of all paths is soon one and the same. ``method="gibbs"`` starts from one such path and goes on from path
    to path by ``sweeps`` passes of a conditional particle filter with ancestor sampling (see
    `conditional_kernels`). Its paths differ from their neighbours everywhere and have no bias that depends on
    the number of particles. It is the default where ``target="exact"``. Under the paper's target the
    probability of a gate depends on the belief that all gates before it leave, so that no other past can be
    weighed without walking the whole future again: there, ancestors are the only choice.

    The filter keeps no covariances: the Kalman filter is run again along each path, once for the part that
    paths have in common. States of one path share its gains and factors, so that each costs little more than
    a matrix-vector product per step. Where the model explodes and covariances cannot be factored any more, a
    `FilterDiedError` says so. Warns with `FewPathsWarning` where the paths pass through fewer than 16
    different draws, or a quarter of what could be.
    """
    found = drawn_paths(
        filtered, paths=paths, states_per_path=states_per_path, seed=seed, method=method, sweeps=sweeps
    )
    if filtered.model.drift.gated:
        _warn_of_few(found, filtered)
    return found


def drawn_paths(
    filtered: Filtered,
    *,
    paths: int,
    states_per_path: int,
    seed: int,
    method: str | None = None,
    sweeps: int = 2,
) -> Smoothed:
    """Return what `smooth` returns, without warnings."""
    paths = as_int(paths, "paths", least=1)
    draws = as_int(states_per_path, "states_per_path", least=1)
    sweeps = as_int(sweeps, "sweeps", least=1)
    if not isinstance(filtered, Filtered):
        raise ValueError(f"filtered must be what rbpf returns, got {type(filtered).__name__}")
    method = _checked_method(method, filtered)
    pin_blas()
    model, steps = filtered.model, len(filtered.increments)
    drawn = filtered.target == "exact" and method == "ancestors"
    if method == "ancestors":
        lineages = drawn_lineages(filtered, paths, seed)
        packed = filtered.packed[np.arange(steps), lineages]
        inputs = np.full((paths, steps, model.drift.gated), np.nan)
    else:
        inputs = _gibbs_paths(filtered, paths, sweeps, seed)
        lineages, packed = _numbered(inputs), packed_codes(inputs > 0)
    states = np.empty((paths, draws, steps + 1, model.drift.latent_dim))
    system, room = padded_system(model), empty_path(model, filtered.x)
    before = np.full(steps, -1, dtype=np.int32)
    for s in np.lexsort(lineages.T[::-1]):
        shared = _shared(before, lineages[s])
        if shared < steps:
            room.inputs[shared:] = inputs[s, shared:]
            key = np.uint64(filtered.key)
            kernels.walk(system, drawn, key, filtered.x, lineages[s], packed[s], shared, room)
        inputs[s] = room.inputs
        generator(seed, _STATES, int(s)).standard_normal(out=states[s])
        kernels.sample_states(room, states[s])
        before = lineages[s]
    if not (np.abs(states) < _BEYOND).all():
        raise FilterDiedError(
            "the states given a gate path are beyond all bounds, and their covariances no longer positive"
            " definite: the model explodes on this segment"
        )
    distinct = np.array([len(np.unique(column)) for column in lineages.T], dtype=np.int64)
    codes = unpacked_codes(packed, model.drift.gated)
    return Smoothed(codes, inputs, states, lineages, distinct, method)


def drawn_lineages(filtered: Filtered, paths: int, seed: int) -> NDArray[np.int32]:
    """Return ``(S, T-1)`` slots: final particles drawn by their weights, with their ancestors."""
    weights = np.exp(filtered.log_weights)
    last = generator(seed, _PATHS).choice(filtered.particles, size=paths, p=weights / weights.sum())
    lineages = np.empty((paths, len(filtered.increments)), dtype=np.int32)
    kernels.trace(filtered.ancestors, last.astype(np.int64), lineages)
    return lineages


def traced_inputs(filtered: Filtered, lineage: NDArray[np.int32]) -> Floats:
    """Return the inputs ``(T-1, P)`` that the filter drew along a lineage, under the exact target."""
    packed = filtered.packed[np.arange(len(lineage)), lineage]
    room = empty_path(filtered.model, filtered.x)
    key = np.uint64(filtered.key)
    kernels.walk(padded_system(filtered.model), True, key, filtered.x, lineage, packed, 0, room)
    return room.inputs


def _gibbs_paths(filtered: Filtered, paths: int, sweeps: int, seed: int) -> Floats:
    """Return the inputs ``(S, T-1, P)`` of every ``sweeps``-th path of the chain that the filter's begins."""
    chain = ConditionalFilter(filtered.model, filtered.x, _CONDITIONAL)
    path = traced_inputs(filtered, drawn_lineages(filtered, 1, seed)[0])
    inputs = np.empty((paths, *path.shape))
    keys = generator(seed, _SWEEPS).integers(0, 2**64, size=(paths, sweeps), dtype=np.uint64)
    for s, several in enumerate(keys):
        for key in several:
            path = chain.sweep(path, int(key))
        inputs[s] = path
    return inputs


def _numbered(inputs: Floats) -> NDArray[np.int32]:
    """Return ``(S, T-1)`` numbers, the same at a time where the inputs of ``(S, T-1, P)`` are."""
    columns = [np.unique(inputs[:, t], axis=0, return_inverse=True)[1] for t in range(inputs.shape[1])]
    return np.stack([column.ravel() for column in columns], axis=1).astype(np.int32)


def _checked_method(method: str | None, filtered: Filtered) -> str:
    possible = filtered.target == "exact" and filtered.model.drift.gated > 0
    if method is None:
        return "gibbs" if possible else "ancestors"
    if one_of(method, "method", METHODS) == "gibbs" and not possible:
        raise ValueError("method='gibbs' needs a filter with target='exact', and a model with gates")
    return method


def _warn_of_few(found: Smoothed, filtered: Filtered) -> None:
    paths, fewest = len(found.codes), int(found.distinct.min())
    most = min(paths, _ENOUGH, filtered.particles if found.method == "ancestors" else paths)
    if 4 * fewest >= most:
        return
    if found.method == "gibbs":
        remedy = "more sweeps"
    else:
        remedy = "more particles" + (" or method='gibbs'" if filtered.target == "exact" else "")
    warnings.warn(
        f"the {paths} paths pass through {fewest} different draws at step {int(found.distinct.argmin())}:"
        f" what varies over gate paths comes out too small; take {remedy}",
        FewPathsWarning,
        stacklevel=3,
    )


def _shared(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Return how many steps two lineages have in common from the start."""
    differs = one != other
    return int(differs.argmax()) if differs.any() else len(one)
