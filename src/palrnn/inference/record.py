"""What a pass of the filter leaves behind: `Record`, then `Filtered`.

Switching codes are kept as one bit per gate in words of 64 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference.config import FilterConfig
from palrnn.inference.kernels.one_belief import WORD
from palrnn.model import PALRNN
from palrnn.model.inputs import offsets


class FilterDiedError(ArithmeticError):
    """Every particle lost its weight: the data is impossible under all sampled gate paths."""

    @classmethod
    def at(cls, step: int, steps: int, particles: int) -> FilterDiedError:
        """Return the error of a filter that died at transition ``step`` (from 0) of ``steps``."""
        return cls(
            f"all {particles} particles died at step {step + 1} of {steps}: x[{step + 1}] is impossible under"
            " every sampled gate path; try a larger observation or process noise, or more particles"
        )


class Record(NamedTuple):
    """What a pass keeps while it runs, one row per transition t -> t+1 (T-1 of them); no covariances.

    The fields are those of `Filtered`; ``log_weights (n,)`` are the latest.
    """

    increments: Floats
    ess: Floats
    resampled: NDArray[np.bool_]
    mean: Floats
    code_words: NDArray[np.uint64]
    ancestors: NDArray[np.int32]
    log_weights: Floats

    @classmethod
    def empty(cls, steps: int, particles: int, latent: int, gated: int) -> Record:
        """Return the record of a pass that has not begun: equal weights, everyone its own ancestor."""
        return cls(
            increments=np.zeros(steps),
            ess=np.zeros(steps),
            resampled=np.zeros(steps, dtype=np.bool_),
            mean=np.zeros((steps + 1, latent)),
            code_words=np.zeros((steps, particles, max(1, -(-gated // WORD))), dtype=np.uint64),
            ancestors=np.tile(np.arange(particles, dtype=np.int32), (steps, 1)),
            log_weights=np.full(particles, -math.log(particles)),
        )


@dataclass(frozen=True, eq=False)
class Filtered:
    """What the particle filter found. Arrays hold one entry per transition, for x[1], ..., x[T-1].

    - ``increments``: log p(x_{t+1} | x_{1:t}), summing to ``log_evidence`` = log p(x_2, ..., x_T | x_1)
    - ``ess``: effective sample size after the weight update, before resampling (eq. rbpf_ess)
    - ``resampled``: whether resampling followed (never after the last step)
    - ``survivors``: distinct ancestors of the particles after it
    - ``code_entropy``: entropy of the full switching code given x_{1:t+1}, in bits, at most ``entropy_bound``
    - ``bit_entropy``: sum of the entropies of the single gates, in bits: the proxy for many gates
    - ``gate_probability (T-1, P)``: P(c_{t,j} = 1 | x_{1:t+1})
    - ``mean (T, M)``: the filtered mean of z_t

    ``config`` says how it was made; ``collected`` holds what `rbpf` was asked to collect besides. The rest is
    what `smooth` needs: the codes of all particles as bits in ``code_words (T-1, particles, words)``, their
    ``ancestors``, the final ``log_weights``, the ``key`` of the random numbers, the data ``x (T, N)`` and, of
    a driven model, its ``inputs (T, K)``.
    """

    increments: Floats
    ess: Floats
    resampled: NDArray[np.bool_]
    survivors: NDArray[np.int64]
    code_entropy: Floats
    bit_entropy: Floats
    gate_probability: Floats
    mean: Floats
    config: FilterConfig
    collected: dict[str, NDArray[Any]] = field(repr=False)
    model: PALRNN = field(repr=False)
    x: Floats = field(repr=False)
    code_words: NDArray[np.uint64] = field(repr=False)
    ancestors: NDArray[np.int32] = field(repr=False)
    log_weights: Floats = field(repr=False)
    key: int = field(repr=False)
    inputs: Floats | None = field(default=None, repr=False)

    @property
    def drive(self) -> Floats | None:
        """C s_t, what inputs add to each step, ``(T, M)``; None where there are none."""
        return offsets(self.model, self.inputs)

    @property
    def particles(self) -> int:
        """The number of particles."""
        return self.config.particles

    @property
    def target(self) -> str:
        """What the filter targets, ``"paper"`` or ``"exact"``."""
        return self.config.target

    @property
    def log_evidence(self) -> float:
        """The log of the normalising-constant estimate, which is unbiased; its log is a little low."""
        # one after the other, as a `Stepper` adds them
        return float(np.add.accumulate(self.increments)[-1])

    @property
    def entropy_bound(self) -> float:
        """log2(particles), the most that ``code_entropy`` can show."""
        return math.log2(self.particles)

    def __repr__(self) -> str:
        steps = len(self.increments)
        return (
            f"Filtered({steps} steps, {self.particles} particles, target={self.target!r}, "
            f"resampling={self.config.resampling!r}: log_evidence={self.log_evidence:.4f}, "
            f"mean ess={self.ess.mean():.1f}, resampled {int(self.resampled.sum())} times, "
            f"mean code_entropy={self.code_entropy.mean():.3f} of at most {self.entropy_bound:.2f} bits)"
        )


def words_of(codes: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return ``codes (..., P)`` as unsigned words of 64 bits, ``(..., ceil(P / 64))``, at least one."""
    gated = codes.shape[-1]
    words = np.zeros((*codes.shape[:-1], max(1, -(-gated // WORD))), dtype=np.uint64)
    for j in range(gated):
        words[..., j // WORD] |= codes[..., j].astype(np.bool_).astype(np.uint64) << np.uint64(j % WORD)
    return words


def codes_of(words: NDArray[np.uint64], gated: int) -> NDArray[np.bool_]:
    """Return the bits of ``words (..., w)`` as booleans ``(..., P)``."""
    bits = [(words[..., j // WORD] >> np.uint64(j % WORD)) & np.uint64(1) for j in range(gated)]
    empty = np.zeros((*words.shape[:-1], 0), dtype=np.bool_)
    return np.stack(bits, axis=-1).astype(np.bool_) if bits else empty
