"""A family of its own for tests: the shallow PLRNN z' = A z + W1 relu(W2 z + h2) + h1, written plainly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palrnn import PALRNN, ClippedShallowPLRNN, Noise, ObservationMap, ShallowPLRNN


@dataclass(frozen=True, eq=False)
class Shallow:
    """Gates are rows of W2, with thresholds h2: no gate is a unit, and there may be more gates than units."""

    A: np.ndarray
    W1: np.ndarray
    W2: np.ndarray
    h1: np.ndarray
    h2: np.ndarray
    observed_dim: int = 1
    input_dim: int = 0

    @property
    def latent_dim(self):
        return len(self.A)

    @property
    def gated(self):
        return len(self.h2)

    @property
    def theta(self):
        return np.concatenate([self.A, self.W1.ravel(), self.W2.ravel(), self.h1, self.h2])

    def with_theta(self, theta):
        sizes = np.cumsum([self.A.size, self.W1.size, self.W2.size, self.h1.size])
        A, W1, W2, h1, h2 = np.split(np.asarray(theta, dtype=float), sizes)
        return Shallow(A, W1.reshape(self.W1.shape), W2.reshape(self.W2.shape), h1, h2, self.observed_dim)

    def embed(self, x):
        x = np.asarray(x, dtype=float)
        return np.concatenate([x, np.zeros((*x.shape[:-1], self.latent_dim - self.observed_dim))], axis=-1)

    def arrays(self):
        return {"A": self.A, "W1": self.W1, "W2": self.W2, "h1": self.h1, "h2": self.h2}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(**arrays)

    def gate_map(self):
        return self.W2, self.h2

    def affine(self, codes):
        open_W1 = self.W1 * np.asarray(codes, dtype=float)[..., None, :]
        return np.diag(self.A) + open_W1 @ self.W2, open_W1 @ self.h2 + self.h1

    def pullback(self, z, codes, r):
        hidden = (z @ self.W2.T + self.h2) * codes
        back = (r @ self.W1) * codes
        parts = [
            r * z,
            r[..., :, None] * hidden[..., None, :],
            back[..., :, None] * z[..., None, :],
            r,
            back,
        ]
        shape = np.broadcast_shapes(z.shape[:-1], r.shape[:-1])
        return np.concatenate(
            [np.broadcast_to(p, (*shape, *p.shape[len(shape) :])).reshape(*shape, -1) for p in parts], axis=-1
        )


def random_shallow(latent, observed, hidden, *, seed=0, clipped=False):
    """A shallow PLRNN of the package whose free runs stay near the origin, with gates that switch."""
    rng = np.random.default_rng(seed)
    return (ClippedShallowPLRNN if clipped else ShallowPLRNN)(
        rng.uniform(-0.5, 0.5, latent),
        0.5 * rng.standard_normal((latent, hidden)) / np.sqrt(hidden),
        rng.standard_normal((hidden, latent)) / np.sqrt(latent),
        0.3 * rng.standard_normal(latent),
        0.5 * rng.standard_normal(hidden),
        rng.standard_normal((latent, observed)),
    )


def covariance(dim, scale, rng):
    """A covariance whose coordinates have much in common."""
    root = rng.standard_normal((dim, dim))
    return scale**2 * (root @ root.T / dim + 0.2 * np.eye(dim))


def shallow_model(latent=2, gated=2, observed=1, *, gate_std=0.4, seed=0):
    """A shallow PLRNN with full noises and an observation map that mixes all units."""
    rng = np.random.default_rng(seed)
    drift = Shallow(
        rng.uniform(0.2, 0.6, latent),
        0.7 * rng.standard_normal((latent, gated)),
        0.7 * rng.standard_normal((gated, latent)),
        0.2 * rng.standard_normal(latent),
        0.3 * rng.standard_normal(gated),
        observed,
    )
    process, initial = (Noise.full(covariance(latent, scale, rng)) for scale in (0.5, 0.7))
    reads = ObservationMap(rng.standard_normal((observed, latent)), 0.5 * rng.standard_normal(observed))
    return PALRNN(drift, process, Noise.full(covariance(observed, 0.4, rng)), gate_std, initial, reads)
