"""Gate paths by Rao-Blackwellised backward simulation (see `backward_kernels`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference import backward_kernels as kernels
from palrnn.inference.bundles import bundle_system, initial_bundles, room_for
from palrnn.inference.particle_filter import TARGETS, Filtered
from palrnn.inference.system import aligned, padded, padded_system
from palrnn.inference.tile_kernels import LANES


class Kept(NamedTuple):
    """What a replay of the filter keeps of some transitions, for bundles of particles.

    ``inputs (steps, bundles, P, LANES)``: the noisy gate inputs drawn. ``mean``, ``cov`` (steps, bundles,
    size) and ``log_weights (steps, n)``: beliefs and weights after the transition, before resampling.
    """

    inputs: Floats
    mean: Floats
    cov: Floats
    log_weights: Floats


class _Beliefs(NamedTuple):
    mean: Floats
    cov: Floats
    log_weights: Floats

    def copy(self) -> _Beliefs:
        again = _Beliefs(*(aligned(array.shape) for array in self))
        for new, old in zip(again, self, strict=True):
            new[:] = old
        return again


def backward_paths(filtered: Filtered, uniforms: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return lineages ``(S, T-1)`` and inputs ``(S, T-1, P)`` of S paths, decided by ``uniforms (S, T-1)``.

    The filter keeps no beliefs, so it is run again: once to leave them at every sqrt(T)-th step, and once
    more, stretch by stretch from the end. That holds 2 sqrt(T) times what the filter holds, instead of T
    times.
    """
    model, x, steps = filtered.model, filtered.x, len(filtered.increments)
    system, room = bundle_system(model), room_for(model)
    paths, gated, latent = len(uniforms), model.drift.gated, model.drift.latent_dim
    mean, cov = initial_bundles(system, model, x[0], filtered.particles)
    beliefs = _Beliefs(mean, cov, np.full(filtered.particles, -math.log(filtered.particles)))
    length = max(1, math.isqrt(steps))
    starts = range(0, steps, length)
    kept = _room(beliefs, min(length, steps), gated)
    nothing = _room(beliefs, 0, gated)

    def replay(start: int, stop: int, beliefs: _Beliefs, kept: Kept) -> None:
        kernels.replay(
            system,
            TARGETS[filtered.target],
            np.uint64(filtered.key),
            x,
            start,
            stop,
            filtered.resampled,
            filtered.ancestors,
            *beliefs,
            room,
            kept,
        )

    marks = []
    for start in starts:
        marks.append(beliefs.copy())
        if start + length < steps:
            replay(start, start + length, beliefs, nothing)
    dim = padded(latent)
    basis = aligned((dim, dim))
    basis[:latent, :latent] = system.basis
    Omega, vector = aligned((paths, dim, dim)), aligned((paths, dim))
    lineages = np.empty((paths, steps), dtype=np.int32)
    inputs = np.empty((paths, steps, gated))
    for start, mark in zip(reversed(starts), reversed(marks), strict=True):
        stop = min(start + length, steps)
        replay(start, stop, mark, kept)
        kernels.simulate_back(
            padded_system(model),
            basis,
            x,
            filtered.packed,
            start,
            stop,
            kept,
            uniforms,
            lineages,
            inputs,
            Omega,
            vector,
        )
    return lineages, inputs


def _room(beliefs: _Beliefs, steps: int, gated: int) -> Kept:
    bundles, size = beliefs.cov.shape
    return Kept(
        aligned((steps, bundles, gated, LANES)),
        aligned((steps, bundles, beliefs.mean.shape[1])),
        aligned((steps, bundles, size)),
        aligned((steps, len(beliefs.log_weights))),
    )
