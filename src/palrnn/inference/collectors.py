"""Diagnostics of a filter pass, made from its transitions as they are finished.

A collector is a function of `Steps`, some transitions in a row, that returns an array with one row for each.
The filter runs those below itself; any other is added from outside:

    def top_weight(steps):
        return steps.weights.max(axis=1)

    rbpf(model, x, collect={"top weight": top_weight}).collected["top weight"]      # (T-1,)

The filter keeps no weights: a collector sees them once, for some thousand particles and steps at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference.kernels import diagnostics as kernels
from palrnn.inference.record import codes_of


class Steps(NamedTuple):
    """The transitions t = ``first``, ..., ``first + k - 1`` of n particles.

    ``weights (k, n)`` are normalised, given x_{1:t+1}, before resampling. ``code_words (k, n, words)`` holds
    the gates that were drawn at t, as bits; ``codes (k, n, P)`` are the same as booleans. ``ancestors (k,
    n)`` are the particles of transition t - 1 that those of t come from.
    """

    first: int
    weights: Floats
    code_words: NDArray[np.uint64]
    ancestors: NDArray[np.int32]
    gated: int

    @property
    def codes(self) -> NDArray[np.bool_]:
        """The gates of all particles, ``(k, n, P)``."""
        return codes_of(self.code_words, self.gated)


Collector = Callable[[Steps], NDArray[Any]]


def gate_probability(steps: Steps) -> Floats:
    """P(c_{t,j} = 1 | x_{1:t+1}) = sum_i w_i c_j^(i), ``(k, P)``."""
    probability = np.empty((len(steps.weights), steps.gated))
    kernels.gate_probabilities(steps.code_words, steps.weights, probability)
    return probability


def code_entropy(steps: Steps) -> Floats:
    """H_t = -sum_c p_t(c) log2 p_t(c) (Sec. rbpf_louis_details), in bits, ``(k,)``.

    p_t(c) is the weight of the particles with code c: the plug-in estimate, at most log2(n).
    """
    entropy = np.empty(len(steps.weights))
    kernels.code_entropies(steps.code_words, steps.weights, entropy)
    return entropy


def bit_entropy(steps: Steps) -> Floats:
    """The summed entropies of single gates, in bits, ``(k,)``: the paper's proxy where codes are many."""
    return summed_bit_entropy(gate_probability(steps))


def summed_bit_entropy(probability: Floats) -> Floats:
    """-sum_j p_j log2 p_j + (1 - p_j) log2 (1 - p_j), over the last axis of ``probability (..., P)``."""
    both = np.stack([probability, 1.0 - probability])
    positive = np.where(both > 0, both, 1.0)
    return np.asarray(-(positive * np.log2(positive)).sum(axis=(0, -1)))


def survivor_counts(ancestors: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many particles of each transition have offspring in the next, ``(T-1, n) -> (T-1,)``.

    A survivor keeps its slot (see `settle`); all survive the last.
    """
    count = np.full(len(ancestors), ancestors.shape[1], dtype=np.int64)
    count[:-1] = (ancestors[1:] == np.arange(ancestors.shape[1])).sum(axis=1)
    return count


class Collection:
    """What named collectors made of a pass."""

    def __init__(self, collect: Mapping[str, Collector] | None) -> None:
        if collect is not None and not isinstance(collect, Mapping):
            raise ValueError(f"collect must be a mapping from names to functions, got {collect!r}")
        self._collectors = dict(collect or {})
        for name, collector in self._collectors.items():
            if not callable(collector):
                raise ValueError(f"collect[{name!r}] must be a function of `Steps`, got {collector!r}")
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in self._collectors}

    def add(self, steps: Steps) -> None:
        """Run all collectors on some more transitions."""
        for name, collector in self._collectors.items():
            rows = np.asarray(collector(steps))
            if rows.shape[:1] != steps.weights.shape[:1]:
                wanted = f"{len(steps.weights)} rows, one per transition"
                raise ValueError(f"collect[{name!r}] must return {wanted}, got shape {rows.shape}")
            self._parts[name].append(rows)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was collected, ``(T-1, ...)`` by name."""
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}
