"""Symbolic dynamics: the sequence of switching codes as a language of its own.

Each code names a linear region of state space. Which regions a trajectory visits, how long it stays, where it
goes next and how predictable that is are invariants too, and they survive any change of coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_int

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SymbolicDynamics:
    """A sequence of T codes, told by the K different ones, most visited first.

    ``codes (K, P)``; ``symbols (T,)``, the sequence as indices into them; ``occupancy (K,)``, fractions of
    time; ``visits (K,)``, how often each was entered; ``dwell_times (K,)``, mean number of steps per visit
    (the first and last visit of the sequence are cut short and count as they are); ``runs (R, 2)``, symbol
    and length of each visit in order; ``transitions``, the sparse (K, K) matrix of the probabilities of the
    next code, whose rows sum to 1 (a code seen only at the very end has an empty row).
    """

    codes: NDArray[np.bool_]
    symbols: Integers
    occupancy: Floats
    visits: Integers
    dwell_times: Floats
    runs: Integers
    transitions: csr_array

    @property
    def numbers(self) -> list[int]:
        """The visited codes as whole numbers, the first gated unit the highest bit; of any size."""
        return [int("".join("1" if bit else "0" for bit in code) or "0", 2) for code in self.codes]

    @property
    def occupancy_entropy(self) -> float:
        """The entropy of the occupancy, in bits: what a single code tells."""
        return _entropy(self.occupancy)

    def entropy_rate(self, order: int = 1) -> float:
        """Return the entropy of the next code given the last ``order`` codes, in bits per step.

        The plug-in estimate from the sequence itself. For a stationary source it falls towards the entropy
        rate as ``order`` grows, as long as words of ``order + 1`` codes are seen often; beyond, it falls to 0
        because every word is new.
        """
        order = as_int(order, "order", least=1, most=len(self.symbols) - 1)
        before = np.zeros(len(self.symbols) - order, dtype=np.int64)
        for lag in range(order):
            before = self._joined(before, self.symbols[lag : lag + len(before)])
        both = self._joined(before, self.symbols[order:])
        return max(0.0, _entropy(_frequencies(both)) - _entropy(_frequencies(before)))

    def _joined(self, words: Integers, next_symbols: Integers) -> Integers:
        """Return the words one symbol longer, numbered from 0 again."""
        _, joined = np.unique(words * len(self.codes) + next_symbols, return_inverse=True)
        return np.asarray(joined, dtype=np.int64)

    def __repr__(self) -> str:
        sizes = f"{len(self.codes)} codes of {self.codes.shape[1]} gates in {len(self.symbols)} steps"
        return f"SymbolicDynamics({sizes}, mean dwell {len(self.symbols) / len(self.runs):.4g} steps)"


def symbolic_dynamics(codes: ArrayLike) -> SymbolicDynamics:
    """Return the symbolic dynamics of ``codes (T, P)``, of ``model.codes(states)`` or a PAL-RNN's sample."""
    try:
        bits = np.asarray(codes)
    except ValueError:
        raise ValueError("codes must be (T, P), got rows of different lengths") from None
    if bits.ndim != 2 or len(bits) < 2:
        raise ValueError(f"codes must be (T, P) with T >= 2, got {bits.shape}")
    if bits.dtype != np.bool_ and not np.isin(bits, (0, 1)).all():
        raise ValueError("codes must hold 0 and 1 only; states become codes by model.codes(states)")
    bits = bits.astype(np.bool_)
    labels = _labels(bits)
    _, first, symbols, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    # most visited first, then in order of appearance: the numbering must not depend on how labels are made
    order = np.lexsort((first, -counts))
    symbols = np.argsort(order)[symbols]
    starts = np.flatnonzero(np.diff(symbols, prepend=-1))
    runs = np.column_stack([symbols[starts], np.diff(starts, append=len(symbols))])
    visits = np.bincount(runs[:, 0], minlength=len(order))
    result = SymbolicDynamics(
        codes=bits[first[order]],
        symbols=symbols,
        occupancy=counts[order] / len(symbols),
        visits=visits,
        dwell_times=counts[order] / visits,
        runs=runs,
        transitions=_transitions(symbols, len(order)),
    )
    for array in (result.codes, symbols, result.occupancy, visits, result.dwell_times, runs):
        array.flags.writeable = False
    return result


def _labels(bits: NDArray[np.bool_]) -> Integers:
    """Return a number for each row of ``bits (T, P)``, the same for equal rows, whatever P is."""
    labels = np.zeros(len(bits), dtype=np.int64)
    for first in range(0, bits.shape[1], 62):
        part = bits[:, first : first + 62]
        values, word = np.unique(part @ (1 << np.arange(part.shape[1], dtype=np.int64)), return_inverse=True)
        _, labels = np.unique(labels * len(values) + word, return_inverse=True)
    return np.asarray(labels, dtype=np.int64)


def _transitions(symbols: Integers, count: int) -> csr_array:
    from scipy.sparse import csr_array

    here, there = symbols[:-1], symbols[1:]
    leaving = np.bincount(here, minlength=count)
    chances = csr_array((1.0 / leaving[here], (here, there)), shape=(count, count))
    chances.sum_duplicates()
    return chances


def _frequencies(labels: Integers) -> Floats:
    counts = np.bincount(labels)
    return np.asarray(counts[counts > 0] / len(labels))


def _entropy(probabilities: Floats) -> float:
    return float(-(probabilities * np.log2(probabilities)).sum())
