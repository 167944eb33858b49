"""The filter for AL-RNNs with diagonal noise, compiled: the same as `reference`, many times as fast."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.vector_code import LANES
from palrnn.inference.collectors import Steps, bit_entropy, code_entropy, gate_probability
from palrnn.inference.config import FilterConfig
from palrnn.inference.filter_arrays import (
    driven_arrays,
    filter_arrays,
    initial_bundles,
    unbundled,
    workspace,
)
from palrnn.inference.kernels import filter_loop as kernels
from palrnn.inference.kernels.noise import resampling_uniforms
from palrnn.inference.kernels.resampling import OUTSIDE
from palrnn.inference.record import FilterDiedError, Record, codes_of
from palrnn.inference.reference import Beliefs
from palrnn.inference.resampling import SCHEMES, kernel_number
from palrnn.model import PALRNN

TARGETS = {"paper": kernels.PAPER, "exact": kernels.EXACT}
#: What is collected of every pass.
DIAGNOSTICS = {"code_entropy": code_entropy, "bit_entropy": bit_entropy, "gate_probability": gate_probability}
# particle-steps per call of the kernel: about a tenth of a second, after which Ctrl-C and progress are heard
_PIECE = 50_000


class Plan(NamedTuple):
    """The settings of a pass as the kernels want them; ``schedule (T-1,)`` is -1 where the ESS decides.

    ``origin`` is the number of the first transition, from which random numbers are counted.
    """

    target: int
    scheme: int
    threshold: float
    schedule: NDArray[np.int8]
    key: np.uint64
    origin: int

    @classmethod
    def of(cls, config: FilterConfig, key: int, schedule: NDArray[np.int8], origin: int = 0) -> Plan:
        """Return the plan of a pass with the random stream ``key``."""
        scheme = kernel_number(config.resampling)
        return cls(TARGETS[config.target], scheme, config.ess_threshold, schedule, np.uint64(key), origin)


def filter_pass(
    model: PALRNN,
    x: Floats,
    drive: Floats | None,
    config: FilterConfig,
    key: int,
    schedule: NDArray[np.int8],
    record: Record,
) -> Iterator[Steps]:
    """Fill the ``record`` of one pass, and yield transitions as they are finished.

    ``drive (T, M)`` is C s_t, None without inputs; ``schedule (T-1,)`` says where to resample, -1 where the
    effective sample size decides.
    """
    steps, particles, gated = len(x) - 1, config.particles, model.drift.gated
    arrays = driven_arrays(filter_arrays(model), drive)
    plan, work = Plan.of(config, key, schedule), workspace(model)
    mean, cov = initial_bundles(arrays, model, x[0], particles)
    record.mean[0] = mean[0, ::LANES]
    piece = max(1, min(steps, _PIECE // particles))
    weights = np.empty((piece, particles))
    start = 0
    while start < steps:
        stop = min(start + piece, steps)
        done = kernels.filter_steps(arrays, plan, x, start, stop, mean, cov, work, weights, record)
        if done < 0:
            raise FilterDiedError.at(-1 - done, steps, particles)
        if plan.scheme == OUTSIDE and record.resampled[done - 1]:
            uniforms = np.empty(particles)
            resampling_uniforms(plan.key, done - 1, uniforms)
            SCHEMES[config.resampling](weights[done - 1 - start], uniforms, record.ancestors[done])
            kernels.inherit(record.ancestors[done], mean, cov, record.log_weights)
        rows = slice(start, done)
        yield Steps(start, weights[: done - start], record.code_words[rows], record.ancestors[rows], gated)
        start = done
    record.mean[:] = _in_units(arrays.basis, record.mean)


def _in_units(basis: Floats, means: Floats) -> Floats:
    """Return ``means (T, M)`` in the model's units: a product of each by itself, so that T has no say."""
    return np.asarray((basis @ means[..., None])[..., 0])


class Cloud:
    """The particles at one time, for `Stepper`.

    They are resampled before the next transition and not after the last one, so that ``weights`` and beliefs
    are those given all rows so far.
    """

    def __init__(self, model: PALRNN, x1: Floats, config: FilterConfig, key: int) -> None:
        self.config, self.key = config, key
        self._gated, self._arrays, self._work = model.drift.gated, filter_arrays(model), workspace(model)
        self._mean, self._cov = initial_bundles(self._arrays, model, x1, config.particles)
        # one transition at a time; its second row is only read
        self._record = Record.empty(1, config.particles, model.drift.latent_dim, self._gated)
        self._record.mean[1] = self._mean[0, ::LANES]
        self._weights = np.exp(self._record.log_weights)[None]
        self._schedule, self._rows = np.zeros(1, dtype=np.int8), np.zeros((2, len(x1)))
        self.codes: NDArray[np.bool_] | None = None

    def advance(self, t: int, x: Floats, push: Floats | None = None) -> float:
        """Take transition ``t``, pushed by C s_t, to the row ``x (N,)``; return the increment, NaN if all
        died."""
        record, particles = self._record, self.config.particles
        plan = Plan.of(self.config, self.key, self._schedule, origin=t)
        if t > 0 and record.ess[0] < plan.threshold * particles:
            uniforms, ancestors = np.empty(particles), np.empty(particles, dtype=np.int32)
            resampling_uniforms(plan.key, t - 1, uniforms)
            SCHEMES[self.config.resampling](self._weights[0], uniforms, ancestors)
            kernels.inherit(ancestors, self._mean, self._cov, record.log_weights)
        self._rows[1] = x
        arrays = driven_arrays(self._arrays, None if push is None else push[None])
        done = kernels.filter_steps(
            arrays, plan, self._rows, 0, 1, self._mean, self._cov, self._work, self._weights, record
        )
        self.codes = codes_of(record.code_words[0], self._gated)
        return float(record.increments[0]) if done > 0 else math.nan

    @property
    def weights(self) -> Floats:
        """The normalised weights, ``(n,)``."""
        return self._weights[0]

    @property
    def ess(self) -> float:
        """The effective number of particles; all of them before the first transition."""
        return float(self._record.ess[0]) if self.codes is not None else float(self.config.particles)

    @property
    def mean(self) -> Floats:
        """The filtered mean of the state, ``(M,)``."""
        return _in_units(self._arrays.basis, self._record.mean[1:])[0]

    def beliefs(self, particles: NDArray[Any]) -> Beliefs:
        """The beliefs over the state of some ``particles (k,)``."""
        return Beliefs(*unbundled(self._arrays, self._mean, self._cov, particles))
