"""`rbpf`: which gates were open, and how likely is the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_int, as_series, one_of
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, quiet
from palrnn.engine.seeds import generator
from palrnn.inference.bundles import bundle_system, initial_bundles, room_for
from palrnn.inference.kernels import filter_loop as kernels
from palrnn.inference.kernels.tiles import LANES
from palrnn.inference.resampling import SCHEMES
from palrnn.model import PALRNN

TARGETS = {"paper": kernels.PAPER, "exact": kernels.EXACT}
# particle-steps per call of the kernel: about a tenth of a second, after which Ctrl-C and progress are heard
_PIECE = 50_000


class FilterDiedError(ArithmeticError):
    """Every particle lost its weight: the data is impossible under all sampled gate paths."""


class Record(NamedTuple):
    """What the filter keeps, one row per transition t -> t+1 (T-1 of them); no covariances."""

    increments: Floats
    ess: Floats
    resampled: NDArray[np.bool_]
    survivors: NDArray[np.int64]
    code_entropy: Floats
    bit_entropy: Floats
    gate_probability: Floats
    mean: Floats
    codes: NDArray[np.uint64]
    ancestors: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Filtered:
    """What the particle filter found. Arrays hold one entry per transition, for x[1], ..., x[T-1].

    - ``increments``: log p(x_{t+1} | x_{1:t}), summing to ``log_evidence`` = log p(x_2, ..., x_T | x_1)
    - ``ess``: effective sample size after the weight update, before resampling
    - ``resampled``: whether resampling followed (never after the last step)
    - ``survivors``: distinct ancestors of the particles after it
    - ``code_entropy``: entropy of the full switching code given x_{1:t+1}, in bits, at most ``entropy_bound``
    - ``bit_entropy``: sum of the entropies of the single gates, in bits: the proxy for many gates
    - ``gate_probability (T-1, P)``: P(c_{t,j} = 1 | x_{1:t+1})
    - ``mean (T, M)``: the filtered mean of z_t

    The rest is what `smooth` needs: the codes in ``packed`` bits, the ``ancestors``, the final
    ``log_weights``.
    """

    increments: Floats
    ess: Floats
    resampled: NDArray[np.bool_]
    survivors: NDArray[np.int64]
    code_entropy: Floats
    bit_entropy: Floats
    gate_probability: Floats
    mean: Floats
    particles: int
    target: str
    resampling: str
    ess_threshold: float
    model: PALRNN = field(repr=False)
    x: Floats = field(repr=False)
    packed: NDArray[np.uint64] = field(repr=False)
    ancestors: NDArray[np.int32] = field(repr=False)
    log_weights: Floats = field(repr=False)
    key: int = field(repr=False)

    @property
    def log_evidence(self) -> float:
        """The log of the normalising-constant estimate, which is unbiased; its log is a little low."""
        return float(self.increments.sum())

    @property
    def entropy_bound(self) -> float:
        """log2(particles), the most that ``code_entropy`` can show."""
        return math.log2(self.particles)

    def __repr__(self) -> str:
        steps = len(self.increments)
        return (
            f"Filtered({steps} steps, {self.particles} particles, target={self.target!r}, "
            f"resampling={self.resampling!r}: log_evidence={self.log_evidence:.4f}, "
            f"mean ess={self.ess.mean():.1f}, resampled {int(self.resampled.sum())} times, "
            f"mean code_entropy={self.code_entropy.mean():.3f} of at most {self.entropy_bound:.2f} bits)"
        )


def rbpf(
    model: PALRNN,
    x: ArrayLike,
    *,
    particles: int = 256,
    seed: int = 0,
    target: str = "paper",
    resampling: str = "multinomial",
    ess_threshold: float = 0.5,
    schedule: ArrayLike | None = None,
    progress: Progress = quiet,
) -> Filtered:
    """Filter ``x (T, N)`` with a Rao-Blackwellised particle filter over gate paths (Alg. rbpf-louis).

    The segment starts at ``z_1 ~ N(embed(x[0]), initial_std^2)``; the evidence is that of ``x[1:]`` given
    ``x[0]``. NaN in ``x[1:]`` means not observed: the update uses the other coordinates.

    ``target="paper"`` draws each gate from its integrated probit and leaves the belief over the state as it
    was. ``target="exact"`` draws the noisy gate inputs jointly and conditions the belief on them, which makes
    the filter exact for the model (see the room's README).

    ``resampling`` is one of multinomial (the paper's), systematic, stratified, residual. It happens when the
    effective sample size falls below ``ess_threshold * particles`` (0: never, above 1: always), or, if
    ``schedule (T-1,)`` is given, after exactly those steps where it is true.

    Raises `FilterDiedError` where all particles have weight zero.
    """
    settings = Settings.checked(particles, target, resampling, ess_threshold)
    key = stream(seed)
    series = checked_series(model, x)
    return run_filter(model, series, settings, key, schedule, progress)


class Settings(NamedTuple):
    """Checked settings of a filter pass."""

    particles: int
    target: str
    resampling: str
    ess_threshold: float

    @property
    def kernel_target(self) -> int:
        """The number by which the kernels know the target."""
        return TARGETS[self.target]

    @property
    def kernel_scheme(self) -> int:
        """The number by which the kernels know the resampling scheme."""
        return SCHEMES[self.resampling]

    @classmethod
    def checked(cls, particles: int, target: str, resampling: str, ess_threshold: float) -> Settings:
        """Check each setting by name."""
        return cls(
            as_int(particles, "particles", least=1),
            one_of(target, "target", TARGETS),
            one_of(resampling, "resampling", SCHEMES),
            as_float(ess_threshold, "ess_threshold", least=0.0),
        )


def stream(seed: int, *numbers: int) -> int:
    """Return the 64-bit key of a filter pass: of ``seed``, or of one of its numbered streams."""
    return int(generator(seed, *numbers).integers(0, 2**64, dtype=np.uint64))


def checked_model(model: PALRNN) -> PALRNN:
    """Return ``model`` if it is a PAL-RNN."""
    if not isinstance(model, PALRNN):
        raise ValueError(f"model must be a PALRNN, got {type(model).__name__}")
    return model


def checked_series(model: PALRNN, x: ArrayLike) -> Floats:
    """Return ``x (T, N)`` for ``model``; NaN is allowed after the first row."""
    series = as_series(x, dim=checked_model(model).drift.observed_dim, allow_nan=True)
    if np.isnan(series[0]).any():
        column = int(np.isnan(series[0]).argmax())
        raise ValueError(f"x[0] must be fully observed, it starts the filter; column {column} is NaN")
    return series


def run_filter(
    model: PALRNN,
    x: Floats,
    settings: Settings,
    key: int,
    schedule: ArrayLike | None = None,
    progress: Progress = quiet,
) -> Filtered:
    """Return the filter pass over checked input, with the random stream ``key``."""
    pin_blas()
    steps, particles = x.shape[0] - 1, settings.particles
    system, room = bundle_system(model), room_for(model)
    mean, cov = initial_bundles(system, model, x[0], particles)
    log_weights = np.full(particles, -math.log(particles))
    record = empty_record(steps, particles, model.drift.latent_dim, model.drift.gated)
    record.mean[0] = mean[0, ::LANES]
    plan = _checked_schedule(schedule, steps)
    piece = max(1, _PIECE // particles)
    for start in range(0, steps, piece):
        stop = min(start + piece, steps)
        died = kernels.filter_steps(
            system,
            settings.kernel_target,
            settings.kernel_scheme,
            settings.ess_threshold,
            plan,
            np.uint64(key),
            x,
            start,
            stop,
            mean,
            cov,
            log_weights,
            room,
            record,
        )
        if died >= 0:
            raise FilterDiedError(
                f"all {particles} particles died at step {died + 1} of {steps}: x[{died + 1}] is impossible"
                " under every sampled gate path; try a larger observation_std or process_std, or more"
                " particles"
            )
        progress(stop, steps, {"log_evidence": float(record.increments[:stop].sum())})
    kept = record._asdict()
    packed = kept.pop("codes")
    return Filtered(
        **kept | {"mean": record.mean @ system.basis.T},
        particles=particles,
        target=settings.target,
        resampling=settings.resampling,
        ess_threshold=settings.ess_threshold,
        model=model,
        x=x,
        packed=packed,
        log_weights=log_weights,
        key=key,
    )


def empty_record(steps: int, particles: int, latent: int, gated: int) -> Record:
    """Return the room for what a filter pass keeps."""
    identity = np.arange(particles, dtype=np.int32)
    record = Record(
        increments=np.zeros(steps),
        ess=np.zeros(steps),
        resampled=np.zeros(steps, dtype=np.bool_),
        survivors=np.full(steps, particles, dtype=np.int64),
        code_entropy=np.zeros(steps),
        bit_entropy=np.zeros(steps),
        gate_probability=np.zeros((steps, gated)),
        mean=np.zeros((steps + 1, latent)),
        codes=np.zeros((steps, particles, max(1, -(-gated // kernels.WORD))), dtype=np.uint64),
        ancestors=np.zeros((steps, particles), dtype=np.int32),
    )
    record.ancestors[0] = identity
    return record


def _checked_schedule(schedule: ArrayLike | None, steps: int) -> NDArray[np.int8]:
    if schedule is None:
        return np.full(steps, -1, dtype=np.int8)
    plan = np.asarray(schedule)
    if plan.shape != (steps,):
        raise ValueError(f"schedule must have shape ({steps},), one entry per transition, got {plan.shape}")
    return plan.astype(np.bool_).astype(np.int8)
