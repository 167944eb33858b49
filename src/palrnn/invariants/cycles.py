"""Cycles of an AL-RNN, searched along the code sequences of a trajectory.

A cycle of period k runs through a word of k codes. Along a given word the map is affine, z' = J z + b with J
= J_k ... J_1, so the word's only candidate is z = (I - J)^{-1} b. The candidate is a cycle if iterating the
network from it follows the word and comes back. The words to try are those that a trajectory has visited,
those after which it came closest to its start first.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_int, as_series
from palrnn.engine.kernel import pin_blas
from palrnn.invariants.fixed_points import jacobians, sorted_eigenvalues
from palrnn.invariants.symbolic import Integers, symbolic_dynamics
from palrnn.model import ALRNN, PALRNN

_CHUNK = 512


@dataclass(frozen=True, eq=False)
class Cycle:
    """A cycle: ``states (k, M)``, ``codes (k, P)`` and ``multipliers (M,)``, the eigenvalues of J_k...J_1."""

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
    model: ALRNN | PALRNN, trajectory: ArrayLike, *, max_period: int = 12, most_words: int = 500
) -> list[Cycle]:
    """Return the cycles of period 2 to ``max_period`` along the words of ``trajectory (T, M)``, in order.

    At most ``most_words`` different words are tried for each period. Every cycle returned was verified by
    iterating the map (of a PAL-RNN, of its hard-gated drift). Fixed points are found by `fixed_points`.
    """
    drift = model.drift if isinstance(model, PALRNN) else model
    states = as_series(trajectory, "trajectory", min_steps=3, dim=drift.latent_dim)
    longest = as_int(max_period, "max_period", least=2, most=len(states) - 1)
    most_words = as_int(most_words, "most_words", least=1)
    pin_blas()
    symbols = symbolic_dynamics(drift.codes(states))
    J = jacobians(drift, symbols.codes)
    found = []
    for period in range(2, longest + 1):
        words = _words(symbols.symbols, states, period, most_words)
        for first in range(0, len(words), _CHUNK):
            found += _closed(drift, symbols.codes, J, words[first : first + _CHUNK])
    return found


def _words(symbols: Integers, states: Floats, period: int, most: int) -> Integers:
    """Return the different cyclic words ``(U, period)`` of the sequence, closest returns first.

    A word and its rotations are the same cycle; a word that repeats a shorter one belongs to a shorter cycle.
    """
    windows = np.lib.stride_tricks.sliding_window_view(symbols[:-1], period)
    step = states[period:] - states[:-period]
    nearest = np.argsort(np.einsum("ti,ti->t", step, step), kind="stable")
    # a cycle comes back to its first code
    nearest = nearest[symbols[nearest + period] == symbols[nearest]]
    seen: set[bytes] = set()
    words = []
    for t in nearest:
        word = windows[t]
        name = min(np.roll(word, shift).tobytes() for shift in range(period))
        if name in seen or _repeats(word):
            continue
        seen.add(name)
        words.append(word)
        if len(words) == most:
            break
    return np.array(words, dtype=np.int64).reshape(len(words), period)


def _repeats(word: Integers) -> bool:
    """Whether the word is a shorter one several times over."""
    size = len(word)
    return any(size % part == 0 and (word == np.roll(word, part)).all() for part in range(1, size // 2 + 1))


def _closed(drift: ALRNN, codes: NDArray[np.bool_], J: Floats, words: Integers) -> list[Cycle]:
    """Return the cycles among ``words (U, k)``, given the visited ``codes (K, P)`` and their Jacobians."""
    dim = drift.latent_dim
    whole = np.broadcast_to(np.eye(dim), (len(words), dim, dim))
    bias = np.zeros((len(words), dim, 1))
    for place in range(words.shape[1]):
        step = J[words[:, place]]
        whole, bias = step @ whole, step @ bias + drift.h[:, None]
    found = []
    for word, total, offset in zip(words, whole, bias[..., 0], strict=True):
        try:
            start = np.linalg.solve(np.eye(dim) - total, offset)
        except np.linalg.LinAlgError:
            continue
        multipliers = sorted_eigenvalues(total[None])[0]
        states = _verified(drift, start, codes[word], abs(multipliers[0]))
        if states is not None:
            found.append(Cycle(states, codes[word], multipliers))
    return found


def _verified(drift: ALRNN, start: Floats, word: NDArray[np.bool_], growth: float) -> Floats | None:
    """Iterate the map from ``start``: return the states if they follow the word and close, else None."""
    if not np.isfinite(start).all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        orbit = drift.rollout_from(start, len(word) + 1)
    if orbit.diverged_at is not None or not np.array_equal(drift.codes(orbit[:-1]), word):
        return None
    # rounding at the start comes back multiplied by the growth along the cycle
    allowed = 1e-10 * max(1.0, growth) * (1.0 + np.abs(orbit).max())
    closes = np.abs(orbit[-1] - orbit[0]).max() <= min(allowed, 1e-3 * (1.0 + np.abs(orbit).max()))
    return np.asarray(orbit[:-1]) if closes else None
