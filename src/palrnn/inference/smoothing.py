"""`smooth`: gate paths and states drawn given all of the data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.inference import reference_smoothing
from palrnn.inference.config import SampleConfig, SampleSettings, sample_config
from palrnn.inference.draws import arviz_of, xarray_of
from palrnn.inference.gate_paths import GatePaths, gibbs_paths, traced_paths
from palrnn.inference.kernels import smoothing as kernels
from palrnn.inference.path import empty_path
from palrnn.inference.path_arrays import path_arrays
from palrnn.inference.record import FilterDiedError, Filtered, words_of
from palrnn.model import ALRNN, PALRNN

_STATES = 1
# numbers in the covariances that plain walks hold at once: a few of 64 MB
_WALKED = 8_000_000
# products of four states, as in the squares of scores, overflow beyond
_BEYOND = 1e60
# different paths beyond which a covariance over them is fair
_ENOUGH = 64


class FewPathsWarning(UserWarning):
    """Paths have much in common: what varies over gate paths comes out too small."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Draws from the smoothing distribution: S gate paths, K state trajectories for each.

    - ``codes (S, T-1, P)``: the gates of each path
    - ``gate_inputs (S, T-1, P)``: the noisy gate inputs u, of which the codes are the signs; NaN under the
      paper's target, which does not condition on them
    - ``states (S, K, T, M)``: states given the path and all data
    - ``lineages (S, T-1)``: numbers for the draws that make up each path, the same for the same draw
    - ``distinct (T-1,)``: how many different draws the paths pass through at each time
    - ``method``: how the paths were drawn
    """

    codes: NDArray[np.bool_] = field(repr=False)
    gate_inputs: Floats = field(repr=False)
    states: Floats = field(repr=False)
    lineages: NDArray[np.int32] = field(repr=False)
    distinct: NDArray[np.int64]
    method: str

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset`: ``states (path, draw, time, unit)``, ``gates (path, step, gate)``.

        Also ``distinct (step)``, and the method as an attribute. Steps lead from one time to the next. Needs
        xarray: ``pip install 'palrnn[arviz]'``.
        """
        return xarray_of(self)

    def to_arviz(self) -> Any:
        """Return the draws as the group ``posterior`` of ArviZ, in one chain.

        ``states (chain, draw, time, unit)``, ``gates (chain, draw, step, gate)``: draws of one path follow
        each other, with its gates. By the method "gibbs" paths are a Markov chain in this order. It is what
        the installed ArviZ works with: an `InferenceData`, or from 1.0 on an `xarray.DataTree`.
        """
        return arviz_of(self)

    def __repr__(self) -> str:
        paths, draws, times, latent = self.states.shape
        return (
            f"Smoothed({paths} paths x {draws} states by {self.method!r}, {times} times, {latent} units; "
            f"at least {self.distinct.min()} paths differ at any step)"
        )


def smooth(
    filtered: Filtered, config: SampleConfig | None = None, **settings: Unpack[SampleSettings]
) -> Smoothed:
    """Draw gate paths given all of the data, and states from the Gaussian smoother given each.

    ``settings`` are those of `SampleConfig`, in place of what ``config`` says.

    ``method="ancestors"``, the paper's, traces the ancestors of final particles. It coalesces: the early part
    of all paths is soon one and the same. ``method="gibbs"`` starts from one such path and goes on from path
    to path by ``sweeps`` passes of a conditional particle filter with ancestor sampling (see
    `kernels.conditional`). Its paths differ from their neighbours everywhere and have no bias that depends on
    the number of particles. It is the default where ``target="exact"``. Under the paper's target the
    probability of a gate depends on the belief that all gates before it leave, so that no other past can be
    weighed without walking the whole future again: there, ancestors are the only choice.

    The filter keeps no covariances: the Kalman filter is run again along each path, once for the part that
    paths have in common. States of one path share its gains and factors, so that each costs little more than
    a matrix-vector product per step. Where the model explodes and covariances cannot be factored any more, a
    `FilterDiedError` says so. Warns with `FewPathsWarning` where the paths pass through fewer than 16
    different draws, or a quarter of what could be.
    """
    found = drawn_paths(filtered, sample_config(config, settings))
    if filtered.model.drift.gated:
        _warn_of_few(found, filtered)
    return found


def drawn_paths(filtered: Filtered, config: SampleConfig) -> Smoothed:
    """Return what `smooth` returns, without warnings."""
    drawn, method = drawn_gates(filtered, config)
    states = drawn_states(filtered.model, filtered.x, drawn, config, filtered.drive)
    return Smoothed(drawn.codes, drawn.inputs, states, drawn.lineages, drawn.distinct, method)


def drawn_gates(filtered: Filtered, config: SampleConfig) -> tuple[GatePaths, str]:
    """Return the gate paths of `smooth` without states, and the method that drew them."""
    if not isinstance(filtered, Filtered):
        raise ValueError(f"filtered must be what rbpf returns, got {type(filtered).__name__}")
    method = _checked_method(config.method, filtered)
    pin_blas()
    if method == "ancestors":
        return traced_paths(filtered, config.paths, config.seed), method
    return gibbs_paths(filtered, config), method


def drawn_states(
    model: PALRNN, x: Floats, paths: GatePaths, config: SampleConfig, drive: Floats | None = None
) -> Floats:
    """Return K states for each path, ``(S, K, T, M)``; a path has its own random stream.

    ``drive (T, M)`` is C s_t, None without inputs.
    """
    noise = np.empty((len(paths.codes), config.states_per_path, len(x), model.drift.latent_dim))
    for s in range(len(noise)):
        generator(config.seed, _STATES, s).standard_normal(out=noise[s])
    states = states_given_paths(model.drift, model, x, drive, paths, noise)
    if not (np.abs(states) < _BEYOND).all():
        raise FilterDiedError(
            "the states given a gate path are beyond all bounds, and their covariances no longer positive"
            " definite: the model explodes on this segment"
        )
    return states


@singledispatch
def states_given_paths(
    drift: Any, model: PALRNN, x: Floats, drive: Floats | None, paths: GatePaths, noise: Floats
) -> Floats:
    """Return states drawn given each path, made of standard normal ``noise (S, K, T, M)``, which is used up.

    `reference_smoothing`, unless something is registered for this kind of ``drift``.
    """
    size = max(1, _WALKED // (noise.shape[2] * noise.shape[3] ** 2))
    inputs = None if np.isnan(paths.inputs).any() else paths.inputs
    for first in range(0, len(noise), size):
        some = slice(first, first + size)
        with np.errstate(all="ignore"):  # an explosion is noticed by the caller
            walk = reference_smoothing.walk(
                model, x, paths.codes[some], None if inputs is None else inputs[some], drive
            )
            noise[some] = reference_smoothing.sampled_states(walk, noise[some])
    return noise


@states_given_paths.register
def _(
    drift: ALRNN, model: PALRNN, x: Floats, drive: Floats | None, paths: GatePaths, noise: Floats
) -> Floats:
    if not model.is_standard:
        return states_given_paths.dispatch(object)(drift, model, x, drive, paths, noise)
    steps, words = paths.lineages.shape[1], words_of(paths.codes)
    system, room = path_arrays(model, drive), empty_path(model, x)
    before = np.full(steps, -1, dtype=np.int32)
    for s in np.lexsort(paths.lineages.T[::-1]):
        shared = _shared(before, paths.lineages[s])
        if shared < steps:
            kernels.walk(system, x, words[s], paths.inputs[s], shared, room)
        kernels.sample_states(room, noise[s])
        before = paths.lineages[s]
    return noise


def _checked_method(method: str | None, filtered: Filtered) -> str:
    possible = filtered.target == "exact" and filtered.model.drift.gated > 0
    if method is None:
        return "gibbs" if possible else "ancestors"
    if method == "gibbs" and not possible:
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
