"""Runs that are known, in the place of a model: a simulated flow, and a spiral onto its limit cycle."""

from __future__ import annotations

import numpy as np

from palrnn.data import kernels
from palrnn.model import engine
from palrnn.model.engine import PiecewiseAffine


class Simulated(PiecewiseAffine):
    """A simulated flow in the place of a model; only the members that a free run needs do anything."""

    gated = 0
    theta = np.zeros(0)

    def __init__(self, system, dt):
        self.system, self.dt = system, dt
        self.latent_dim = self.observed_dim = system.dim

    def embed(self, x):
        return np.array(x)

    def _nothing(self, *arguments):
        raise NotImplementedError

    with_theta = arrays = from_arrays = gate_map = affine = pullback = _nothing


class Spiral(Simulated):
    """r' = pull r (1 - r^2), a turn in 300.318 steps: from inside onto the unit circle, its limit cycle."""

    def __init__(self, pull):
        self.pull, self.latent_dim, self.observed_dim = pull, 2, 2

    def radius(self, begun, time):
        return np.sqrt(1 / (1 + (1 / begun**2 - 1) * np.exp(-2 * self.pull * time)))


@engine.advance.register
def _advance(model: Simulated, z, steps, _=None):
    states = np.empty((steps, *z.shape))
    nothing, parameters = np.empty((0, z.shape[1])), np.array(model.system.parameters)
    for s, start in enumerate(z):
        run, room = np.empty((steps, z.shape[1])), np.empty((5, z.shape[1]))
        kernels.simulate(model.system.field, start.copy(), parameters, model.dt, nothing, steps, room, run)
        states[:, s] = run
    return states


@engine.advance.register
def _advance_spiral(model: Spiral, z, steps, _=None):
    time = np.arange(1, steps + 1)[:, None]
    radius = model.radius(np.hypot(*z.T), time)
    angle = np.arctan2(z[:, 1], z[:, 0]) + 2 * np.pi / 300.318 * time
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
