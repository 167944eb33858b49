"""The filter for AL-RNNs with diagonal noise, compiled: the same as `reference`, many times as fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.vector_code import LANES
from palrnn.inference.collectors import Steps, bit_entropy, code_entropy, gate_probability
from palrnn.inference.config import FilterConfig
from palrnn.inference.filter_arrays import filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels import filter_loop as kernels
from palrnn.inference.kernels.noise import resampling_uniforms
from palrnn.inference.kernels.resampling import OUTSIDE
from palrnn.inference.record import FilterDiedError, Record
from palrnn.inference.resampling import SCHEMES, kernel_number
from palrnn.model import PALRNN

TARGETS = {"paper": kernels.PAPER, "exact": kernels.EXACT}
#: What is collected of every pass.
DIAGNOSTICS = {"code_entropy": code_entropy, "bit_entropy": bit_entropy, "gate_probability": gate_probability}
# particle-steps per call of the kernel: about a tenth of a second, after which Ctrl-C and progress are heard
_PIECE = 50_000


class Plan(NamedTuple):
    """The settings of a pass as the kernels want them; ``schedule (T-1,)`` is -1 where the ESS decides."""

    target: int
    scheme: int
    threshold: float
    schedule: NDArray[np.int8]
    key: np.uint64

    @classmethod
    def of(cls, config: FilterConfig, key: int, schedule: NDArray[np.int8]) -> Plan:
        """Return the plan of a pass with the random stream ``key``."""
        scheme = kernel_number(config.resampling)
        return cls(TARGETS[config.target], scheme, config.ess_threshold, schedule, np.uint64(key))


def filter_pass(
    model: PALRNN, x: Floats, config: FilterConfig, key: int, schedule: NDArray[np.int8], record: Record
) -> Iterator[Steps]:
    """Fill the ``record`` of one pass, and yield transitions as they are finished.

    ``schedule (T-1,)`` says where to resample, -1 where the effective sample size decides.
    """
    steps, particles, gated = len(x) - 1, config.particles, model.drift.gated
    plan, arrays, work = Plan.of(config, key, schedule), filter_arrays(model), workspace(model)
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
    record.mean[:] = record.mean @ arrays.basis.T
