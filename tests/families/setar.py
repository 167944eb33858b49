"""A self-exciting threshold autoregression (Tong and Lim, 1980) as a family: nothing of it is in src/.

    x_{t+1} = (Phi_0 + sum_j c_j Phi_j) z_t + phi_0 + sum_j c_j phi_j,   c_j = 1{x_{t-delay, 0} > r_j},

with z_t = (x_t, x_{t-1}, ..., x_{t-L+1}), so that M = L N; the older observations move down by one place.
Each threshold r_j that the delayed first coordinate exceeds adds its coefficients. The thresholds are
parameters, too: ``theta = [Phi row-major, phi row-major, r]``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import palrnn


@dataclass(frozen=True, eq=False, repr=False)
class SETAR(palrnn.PiecewiseAffine):
    """``Phi (P + 1, N, L N)``, ``phi (P + 1, N)``, ``thresholds (P,)`` on what was ``delay`` ago."""

    Phi: np.ndarray
    phi: np.ndarray
    thresholds: np.ndarray
    delay: int = 0

    @property
    def observed_dim(self):
        return self.Phi.shape[1]

    @property
    def latent_dim(self):
        return self.Phi.shape[2]

    @property
    def gated(self):
        return len(self.thresholds)

    @property
    def theta(self):
        return np.concatenate([self.Phi.ravel(), self.phi.ravel(), self.thresholds])

    def with_theta(self, theta):
        Phi, phi, r = np.split(np.asarray(theta, dtype=float), [self.Phi.size, self.Phi.size + self.phi.size])
        return type(self)(Phi.reshape(self.Phi.shape), phi.reshape(self.phi.shape), r, self.delay)

    def embed(self, x):
        """The series is taken to have rested at x before."""
        return np.tile(np.asarray(x, dtype=float), self.latent_dim // self.observed_dim)

    def arrays(self):
        names = ("Phi", "phi", "thresholds", "delay")
        return {name: np.asarray(getattr(self, name)) for name in names}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(arrays["Phi"], arrays["phi"], arrays["thresholds"], int(arrays["delay"]))

    def gate_map(self):
        G = np.zeros((self.gated, self.latent_dim))
        G[:, self.delay * self.observed_dim] = 1.0
        return G, -self.thresholds

    def affine(self, codes):
        on = self._on(codes)
        J = np.zeros((*on.shape[:-1], self.latent_dim, self.latent_dim))
        J[..., : self.observed_dim, :] = np.einsum("...j,jnm->...nm", on, self.Phi)
        J[..., self.observed_dim :, : -self.observed_dim] = np.eye(self.latent_dim - self.observed_dim)
        b = np.zeros((*on.shape[:-1], self.latent_dim))
        b[..., : self.observed_dim] = on @ self.phi
        return J, b

    def pullback(self, z, codes, r):
        on, seen = self._on(codes), r[..., : self.observed_dim]
        d_Phi = np.einsum("...j,...n,...m->...jnm", on, seen, z)
        d_phi = np.einsum("...j,...n->...jn", on, seen)
        lead = d_phi.shape[:-2]
        parts = [d_Phi.reshape(*lead, -1), d_phi.reshape(*lead, -1), np.zeros((*lead, self.gated))]
        return np.concatenate(parts, axis=-1)

    def gate_pullback(self, z, r):
        before = np.zeros((*r.shape[:-1], self.theta.size - self.gated))
        return np.concatenate([before, -r], axis=-1)

    @classmethod
    def initial(cls, observed_dim, *, latent_dim, gated, init_std, seed):
        rng = np.random.default_rng(seed)
        Phi = init_std * rng.standard_normal((gated + 1, observed_dim, latent_dim))
        return cls(Phi, np.zeros((gated + 1, observed_dim)), np.linspace(-1.0, 1.0, gated + 2)[1:-1])

    def _on(self, codes):
        codes = np.asarray(codes, dtype=float)
        return np.concatenate([np.ones((*codes.shape[:-1], 1)), codes], axis=-1)


palrnn.register_family("setar", SETAR)


def limit_cycle() -> SETAR:
    """Two regimes of x' = a + 1.2 x - 0.6 x_before, whose rests lie on the other side of the threshold.

    Each regime spirals towards its own rest and never gets there: the switching keeps a cycle alive.
    """
    lags = np.array([[[1.2, -0.6]], [[0.0, 0.0]]])
    return SETAR(lags, np.array([[0.4], [-0.8]]), np.array([0.0]), delay=1)


def two_dimensional(seed: int = 0) -> SETAR:
    """N = 2, three lags, two thresholds, contracting in every regime."""
    rng = np.random.default_rng(seed)
    Phi = 0.12 * rng.standard_normal((3, 2, 6))
    return SETAR(Phi, 0.5 * rng.standard_normal((3, 2)), np.array([-0.3, 0.4]))
