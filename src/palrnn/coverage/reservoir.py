"""A small ensemble of echo-state networks, as what forecasts are compared with.

    r_{t+1} = (1 - leak) r_t + leak tanh(W r_t + V x_t + b),     x_{t+1} = x_t + U [r_{t+1}, x_t, 1]

with random W, V and b, and U by ridge regression on increments. Spectral radius, input scale and ridge are
chosen by the error of free runs on the last fifth of the data, once for the ensemble.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator

_LEAK, _WASHOUT = 0.5, 100
_RADII, _SCALES, _RIDGES = (0.4, 0.8, 1.0), (0.1, 0.5), (1e-4, 1e-2, 1.0)
# free runs that choose: their number, and steps of each
_RUNS, _AHEAD = 10, 80


@dataclass
class Reservoir:
    """One network; ``fit`` learns its readout, ``forecast`` lets it run freely after some rows."""

    dim: int
    units: int
    radius: float
    scale: float
    ridge: float
    seed: int

    def __post_init__(self) -> None:
        rng = generator(self.seed, "reservoir")
        matrix = rng.standard_normal((self.units, self.units)) * (rng.random((self.units, self.units)) < 0.1)
        self.W = self.radius * matrix / np.abs(np.linalg.eigvals(matrix)).max()
        self.V = self.scale * rng.uniform(-1, 1, (self.units, self.dim))
        self.b = self.scale * rng.uniform(-1, 1, self.units)
        self.U: Floats = np.zeros((self.dim, self.units + self.dim + 1))
        self.error = np.zeros(self.dim)

    def advance(self, r: Floats, x: Floats) -> Floats:
        """Return the next reservoir states, after ``r (..., units)`` and inputs ``x (..., dim)``."""
        return (1 - _LEAK) * r + _LEAK * np.tanh(r @ self.W.T + x @ self.V.T + self.b)

    def states(self, x: Floats) -> Floats:
        """Return the reservoir after each of the rows ``x (T, dim)``."""
        r, found = np.zeros(self.units), np.empty((len(x), self.units))
        for t, row in enumerate(x):
            found[t] = r = self.advance(r, row)
        return found

    def fit(self, x: Floats) -> Reservoir:
        """Learn the readout from ``x (T, dim)``, standardised."""
        features = self._features(self.states(x[:-1]), x[:-1])[_WASHOUT:]
        targets = np.diff(x, axis=0)[_WASHOUT:]
        gram = features.T @ features + self.ridge * np.eye(features.shape[1])
        self.U = np.ascontiguousarray(np.linalg.solve(gram, features.T @ targets).T)
        self.error = (targets - features @ self.U.T).std(axis=0)
        return self

    def forecast(self, contexts: Floats, steps: int) -> Floats:
        """Return ``(K, steps, dim)`` after each of ``contexts (K, T, dim)``."""
        r = np.zeros((len(contexts), self.units))
        for t in range(contexts.shape[1]):
            r = self.advance(r, contexts[:, t])
        x, found = contexts[:, -1], np.empty((len(contexts), steps, self.dim))
        for t in range(steps):
            x = np.clip(x + self._features(r, x) @ self.U.T, -1e3, 1e3)
            found[:, t] = x
            r = self.advance(r, x)
        return found

    @staticmethod
    def _features(r: Floats, x: Floats) -> Floats:
        return np.concatenate([r, x, np.ones((len(x), 1))], axis=1)


def reservoir_ensemble(x: Floats, units: int, count: int, seed: int) -> list[Reservoir]:
    """Return ``count`` networks trained on ``x (T, N)``, with the settings that a part of it prefers."""
    cut, rng = int(0.8 * len(x)), generator(seed, "choice")
    seen, kept = x[:cut], x[cut:]
    starts = rng.integers(0, len(kept) - _WASHOUT - _AHEAD, size=_RUNS)
    contexts = np.stack([kept[s : s + _WASHOUT] for s in starts])
    truth = np.stack([kept[s + _WASHOUT : s + _WASHOUT + _AHEAD] for s in starts])

    def loss(choice: tuple[float, float, float]) -> float:
        ahead = Reservoir(x.shape[1], units, *choice, seed).fit(seen).forecast(contexts, _AHEAD)
        return float(np.minimum(np.abs(ahead - truth), 4.0).mean())

    best = min(product(_RADII, _SCALES, _RIDGES), key=loss)
    return [Reservoir(x.shape[1], units, *best, seed + 1 + k).fit(x) for k in range(count)]
