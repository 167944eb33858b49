"""The filter for AL-RNNs with diagonal noise, compiled: the same as `reference`, many times as fast."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.progress import Progress
from palrnn.engine.vector_code import LANES
from palrnn.inference.config import FilterConfig
from palrnn.inference.filter_arrays import filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels import filter_loop as kernels
from palrnn.inference.kernels.noise import resampling_uniforms
from palrnn.inference.kernels.resampling import OUTSIDE
from palrnn.inference.record import FilterDiedError, Record
from palrnn.inference.resampling import SCHEMES, kernel_number
from palrnn.model import PALRNN

TARGETS = {"paper": kernels.PAPER, "exact": kernels.EXACT}
# particle-steps per call of the kernel: about a tenth of a second, after which Ctrl-C and progress are heard
_PIECE = 50_000


def filter_pass(
    model: PALRNN, x: Floats, config: FilterConfig, key: int, plan: NDArray[np.int8], progress: Progress
) -> Record:
    """Return the record of one pass; ``plan (T-1,)`` says where to resample, -1 where the ESS decides."""
    steps, particles = len(x) - 1, config.particles
    arrays, work = filter_arrays(model), workspace(model)
    mean, cov = initial_bundles(arrays, model, x[0], particles)
    record = Record.empty(steps, particles, model.drift.latent_dim, model.drift.gated)
    record.mean[0] = mean[0, ::LANES]
    scheme, target = kernel_number(config.resampling), TARGETS[config.target]
    piece = max(1, _PIECE // particles)
    done = 0
    while done < steps:
        stop = min(done + piece, steps)
        done = kernels.filter_steps(
            arrays, target, scheme, config.ess_threshold, plan, np.uint64(key), x, done, stop, mean, cov,
            work, record,
        )  # fmt: skip
        if done < 0:
            raise FilterDiedError.at(-1 - done, steps, particles)
        if scheme == OUTSIDE and record.resampled[done - 1]:
            uniforms, ancestors = np.empty(particles), record.ancestors[done]
            resampling_uniforms(np.uint64(key), done - 1, uniforms)
            SCHEMES[config.resampling](np.exp(record.log_weights), uniforms, ancestors)
            record.survivors[done - 1] = kernels.inherit(ancestors, mean, cov, record.log_weights)
        progress(done, steps, {"log_evidence": float(record.increments[:done].sum())})
    return record._replace(mean=record.mean @ arrays.basis.T)
