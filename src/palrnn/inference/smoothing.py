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
from palrnn.inference.backward import backward_paths
from palrnn.inference.particle_filter import FilterDiedError, Filtered
from palrnn.inference.path import empty_path, unpacked_codes
from palrnn.inference.system import padded_system

_PATHS, _STATES = 0, 1
# products of four states, as in the squares of scores, overflow beyond
_BEYOND = 1e60
# different paths beyond which a covariance over them is fair
_ENOUGH = 64
METHODS = ("ancestors", "backward")


class FewPathsWarning(UserWarning):
    """Paths have coalesced: what varies over them at early times comes from few particles."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Draws from the smoothing distribution: S gate paths, K state trajectories for each.

    - ``codes (S, T-1, P)``: the gates of each path
    - ``inputs (S, T-1, P)``: the noisy gate inputs u, of which the codes are the signs; NaN under the paper's
      target, which does not condition on them
    - ``states (S, K, T, M)``: states given the path and all data
    - ``lineages (S, T-1)``: the particles that make up each path
    - ``distinct (T-1,)``: how many different particles the paths pass through at each time
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
            f"distinct paths: {self.distinct.min()} at least, {self.distinct[-1]} at the last step)"
        )


def smooth(
    filtered: Filtered,
    *,
    paths: int = 8,
    states_per_path: int = 1,
    seed: int = 0,
    method: str | None = None,
) -> Smoothed:
    """Draw gate paths given all of the data, and states from the Gaussian smoother given each.

    ``method="ancestors"``, the paper's, traces the ancestors of final particles: early on, all paths are soon
    the same. ``method="backward"`` draws at every time anew which particle's past a path has, given its
    future (see `backward_kernels`), and does not coalesce; it is the default where ``target="exact"``. Under
    the paper's target a gate depends on all of the past, and ancestors are the only choice.

    The filter keeps no covariances: the Kalman filter is run again along each path, once for the part that
    paths have in common. States of one path share its gains and factors, so that each costs little more than
    a matrix-vector product per step. Where the model explodes and covariances cannot be factored any more, a
    `FilterDiedError` says so. Warns with `FewPathsWarning` where fewer than 16 particles, or a quarter of
    what could be, have a part in the paths.
    """
    found = drawn_paths(filtered, paths=paths, states_per_path=states_per_path, seed=seed, method=method)
    wanted, fewest = min(len(found.codes), filtered.particles, _ENOUGH), int(found.distinct.min())
    if filtered.model.drift.gated and 4 * fewest < wanted:
        warnings.warn(
            f"the {len(found.codes)} paths pass through {fewest} different particles at step"
            f" {int(found.distinct.argmin())}: what varies over gate paths comes out too small; take more"
            " particles"
            + ("" if found.method == "backward" or filtered.target == "paper" else " or method='backward'"),
            FewPathsWarning,
            stacklevel=2,
        )
    return found


def drawn_paths(
    filtered: Filtered, *, paths: int, states_per_path: int, seed: int, method: str | None = None
) -> Smoothed:
    """Return what `smooth` returns, without warnings."""
    paths = as_int(paths, "paths", least=1)
    draws = as_int(states_per_path, "states_per_path", least=1)
    if not isinstance(filtered, Filtered):
        raise ValueError(f"filtered must be what rbpf returns, got {type(filtered).__name__}")
    method = _checked_method(method, filtered.target)
    pin_blas()
    model, x = filtered.model, filtered.x
    steps, gated = len(x) - 1, model.drift.gated
    inputs = np.full((paths, steps, gated), np.nan)
    if method == "ancestors":
        lineages = drawn_lineages(filtered, paths, seed)
    else:
        lineages, inputs = backward_paths(filtered, generator(seed, _PATHS).random((paths, steps)))
    drawn = method == "ancestors" and filtered.target == "exact"
    packed = filtered.packed[np.arange(steps), lineages]
    states = np.empty((paths, draws, steps + 1, model.drift.latent_dim))
    system, room = padded_system(model), empty_path(model, x)
    before = np.full(steps, -1, dtype=np.int32)
    for s in np.lexsort(lineages.T[::-1]):
        shared = _shared(before, lineages[s])
        if shared < steps:
            room.inputs[shared:] = inputs[s, shared:]
            kernels.walk(system, drawn, np.uint64(filtered.key), x, lineages[s], packed[s], shared, room)
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
    return Smoothed(unpacked_codes(packed, gated), inputs, states, lineages, distinct, method)


def _checked_method(method: str | None, target: str) -> str:
    if method is None:
        return "backward" if target == "exact" else "ancestors"
    if one_of(method, "method", METHODS) == "backward" and target != "exact":
        raise ValueError("method='backward' needs a filter with target='exact'")
    return method


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
