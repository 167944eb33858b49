"""The AL-RNN as a family without fast paths: what the plain engine makes of it can be held against JAX."""

from __future__ import annotations

from dataclasses import dataclass

import palrnn


@dataclass(frozen=True, eq=False, repr=False)
class PlainALRNN(palrnn.PiecewiseAffine):
    """Everything is asked of ``network``, but its type is unknown to every fast path."""

    network: palrnn.ALRNN

    @property
    def latent_dim(self):
        return self.network.latent_dim

    @property
    def observed_dim(self):
        return self.network.observed_dim

    @property
    def gated(self):
        return self.network.gated

    @property
    def theta(self):
        return self.network.theta

    @property
    def embedding(self):
        return self.network.embedding

    def with_theta(self, theta):
        return PlainALRNN(self.network.with_theta(theta))

    def with_embedding(self, values):
        return PlainALRNN(self.network.with_embedding(values))

    def embed(self, x):
        return self.network.embed(x)

    def embed_pullback(self, x, r):
        return self.network.embed_pullback(x, r)

    def arrays(self):
        return self.network.arrays()

    @classmethod
    def from_arrays(cls, arrays):
        return cls(palrnn.ALRNN.from_arrays(arrays))

    def gate_map(self):
        return self.network.gate_map()

    def affine(self, codes):
        return self.network.affine(codes)

    def pullback(self, z, codes, r):
        return self.network.pullback(z, codes, r)


palrnn.register_family("plain alrnn", PlainALRNN)
