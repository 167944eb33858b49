"""Cycles of a surrogate, searched along the code sequences of a trajectory.

A cycle of period k runs through a word of k codes. Along a given word the map is affine, z' = J z + b with J
= J_k ... J_1, so the word's only candidate is z = (I - J)^{-1} b. If the orbit of that candidate follows
another word, the search goes on with that one (this is Newton's method for F^k(z) = z, which on a
piecewise-linear map ends after finitely many words or not at all). The words to begin with are those that a
trajectory has visited, those after which it came closest to its start first. What is returned was verified by
iterating the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_int, as_series
from palrnn.engine.kernel import pin_blas
from palrnn.invariants.fixed_points import sorted_eigenvalues
from palrnn.invariants.kernels import cycles as kernels
from palrnn.invariants.symbolic import Integers, symbolic_dynamics
from palrnn.model import ALRNN, BOUND, PALRNN, Surrogate, drift_of
from palrnn.model.engine import codes as codes_of

_NEWTON_STEPS = 12


@dataclass(frozen=True, eq=False)
class Cycle:
    """A cycle: ``states (k, M)``, ``codes (k, P)`` and ``multipliers (M,)``, eigenvalues of J_k ... J_1."""

    states: Floats
    codes: NDArray[np.bool_]
    multipliers: NDArray[np.complex128]

    @property
    def period(self) -> int:
        """k, in steps."""
        return len(self.states)

    @property
    def stable(self) -> bool:
        """Whether it attracts: all multipliers inside the unit circle."""
        return bool(np.abs(self.multipliers[0]) < 1)

    def __repr__(self) -> str:
        kind = "stable" if self.stable else "unstable"
        return f"Cycle(period {self.period}, {kind}, largest multiplier {abs(self.multipliers[0]):.4g})"


def cycles(
    model: Surrogate | PALRNN,
    trajectory: ArrayLike,
    *,
    max_period: int = 12,
    min_period: int = 2,
    most_words: int = 200,
    closeness: float = 0.25,
) -> list[Cycle]:
    """Return cycles of ``min_period`` to ``max_period``, found from words of ``trajectory (T, M)``, in order.

    For each period, at most ``most_words`` different words are tried, and only words after which the
    trajectory is back within ``closeness`` root mean square deviations. Of a PAL-RNN, the hard-gated drift is
    searched. Fixed points, cycles of period 1, are found by `fixed_points`, all of them.
    """
    drift = drift_of(model)
    states = as_series(trajectory, "trajectory", min_steps=3, dim=drift.latent_dim)
    longest = as_int(max_period, "max_period", least=2, most=len(states) - 1)
    shortest = as_int(min_period, "min_period", least=2, most=longest)
    most_words = as_int(most_words, "most_words", least=1)
    reach = as_float(closeness, "closeness", above=0.0) * np.sqrt(states.var(axis=0).sum())
    pin_blas()
    symbols = symbolic_dynamics(codes_of(drift, states)).symbols
    found: list[Cycle] = []
    for period in range(shortest, longest + 1):
        known: set[bytes] = set()
        for t in _starts(symbols, states, period, most_words, reach):
            cycle = _newton(drift, states[t], period)
            if cycle is not None and _name(cycle) not in known:
                known.add(_name(cycle))
                found.append(cycle)
    return found


def _starts(symbols: Integers, states: Floats, period: int, most: int, reach: float) -> Integers:
    """Return the times at which different words begin, up to rotation, closest returns first."""
    step = states[period:] - states[:-period]
    distance = np.sqrt(np.einsum("ti,ti->t", step, step))
    near = np.flatnonzero((distance <= reach) & (symbols[period:] == symbols[:-period]))
    near = near[np.argsort(distance[near], kind="stable")]
    words, primitive = np.empty((len(near), period), dtype=np.int64), np.empty(len(near), dtype=np.bool_)
    kernels.canonical_words(symbols, near, words, primitive)
    first = np.unique(words[primitive], axis=0, return_index=True)[1]
    return np.asarray(near[primitive][np.sort(first)[:most]])


def _newton(drift: Surrogate, start: Floats, period: int) -> Cycle | None:
    """Return the cycle to which the words from ``start`` lead, or None."""
    dim = drift.latent_dim
    z, before = start, np.empty((0, 0), dtype=np.bool_)
    for _ in range(_NEWTON_STEPS):
        orbit, derivative = orbit_derivative(drift, z, period)
        if not np.abs(orbit).max() <= BOUND:
            return None
        codes = codes_of(drift, orbit[:-1])
        if np.array_equal(codes, before):
            return _verified(codes, orbit, derivative)
        try:
            z = np.linalg.solve(np.eye(dim) - derivative, orbit[-1] - derivative @ z)
        except np.linalg.LinAlgError:
            return None
        before = codes
    return None


@singledispatch
def orbit_derivative(drift: Surrogate, start: Floats, period: int) -> tuple[Floats, Floats]:
    """Return the orbit ``(period + 1, M)`` from ``start (M,)``, and the derivative J_k ... J_1 ``(M, M)``."""
    orbit, derivative = np.empty((period + 1, len(start))), np.eye(len(start))
    orbit[0] = start
    # an orbit that runs away overflows; it is no cycle
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(period):
            J, b = drift.affine(codes_of(drift, orbit[t]))
            orbit[t + 1], derivative = J @ orbit[t] + b, J @ derivative
    return orbit, derivative


@orbit_derivative.register
def _(drift: ALRNN, start: Floats, period: int) -> tuple[Floats, Floats]:
    orbit, derivative = np.empty((period + 1, len(start))), np.empty((len(start), len(start)))
    kernels.orbit_derivative(drift.A, drift.W, drift.h, drift.gated, start, orbit, derivative)
    return orbit, derivative


def _verified(codes: NDArray[np.bool_], orbit: Floats, derivative: Floats) -> Cycle | None:
    """Return the cycle if ``orbit (k + 1, M)`` closes after k steps, and not before."""
    multipliers = sorted_eigenvalues(derivative[None])[0]
    size = 1.0 + np.abs(orbit).max()
    # rounding at the start comes back multiplied by the growth along the cycle
    allowed = min(1e-10 * max(1.0, np.abs(multipliers[0])), 1e-3) * size
    back = np.abs(orbit[1:] - orbit[0]).max(axis=1)
    period = len(codes)
    if back[-1] > allowed or any(period % k == 0 and back[k - 1] <= allowed for k in range(1, period)):
        return None
    return Cycle(orbit[:-1].copy(), codes, multipliers)


def _name(cycle: Cycle) -> bytes:
    """Return the least rotation of the cycle's word: the same for a cycle found from any of its states."""
    word = [code.tobytes() for code in cycle.codes]
    return b"".join(min(word[k:] + word[:k] for k in range(len(word))))
