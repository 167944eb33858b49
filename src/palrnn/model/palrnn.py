"""The probabilistic AL-RNN (PAL-RNN): a switching state-space model around the drift of any family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_instance, as_int, as_shape
from palrnn.engine.seeds import generator
from palrnn.model.engine import BOUND, Rollout, gate_inputs, pieces
from palrnn.model.families.alrnn import ALRNN
from palrnn.model.inputs import checked_inputs, offsets
from palrnn.model.kernels import alrnn as kernels
from palrnn.model.noise import Noise, ObservationMap, as_noise
from palrnn.model.surrogate import Surrogate


def drift_of(model: Any) -> Any:
    """Return a surrogate itself, or the drift of a PAL-RNN; refuse anything else."""
    drift = model.drift if isinstance(model, PALRNN) else model
    if not isinstance(drift, Surrogate):
        raise ValueError(f"model must be an ALRNN, another Surrogate or a PALRNN, got {type(model).__name__}")
    return drift


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Sample(Rollout):
    """What a PAL-RNN drew: states (T, M), codes (T-1, P), observations (T, N) with the given x1 first."""

    codes: NDArray[np.bool_]
    observations: Floats


@dataclass(frozen=True, eq=False, init=False)
class PALRNN:
    """A probabilistic AL-RNN (paper, "PAL-RNN"), with noise in the coordinates of the drift.

        c_t     ~ Bernoulli(Phi((G z_t + g) / gate_std)), each gate by itself
        z_{t+1} ~ N(J(c_t) z_t + b(c_t) + C s_t, Q), with inputs s_t where the drift takes any
        x_t     ~ N(B z_t + d, R)

    ``drift`` is an `ALRNN` or any other `Surrogate`. ``process`` (Q) and ``observation`` (R) are `Noise`, or
    a number for one deviation, ``(M,)`` or ``(N,)`` for one per coordinate, or a covariance matrix. A segment
    starts at ``z_1 ~ N(embed(x_1), initial)``; ``initial`` is as ``process`` unless given. ``gate_std = 0``
    means hard gates. ``observation_map`` is [I 0], the first N units, unless given.
    """

    drift: Any
    process: Noise
    observation: Noise
    gate_std: float
    initial: Noise | None
    observation_map: ObservationMap

    def __init__(
        self,
        drift: Any,
        process: Noise | float | ArrayLike,
        observation: Noise | float | ArrayLike,
        gate_std: float,
        initial: Noise | float | ArrayLike | None = None,
        observation_map: ObservationMap | None = None,
    ) -> None:
        """Check and keep the parts; plain numbers become `Noise`."""
        as_instance(drift, "drift", Surrogate)
        dim, seen = drift.latent_dim, drift.observed_dim
        reads = ObservationMap.first_units(seen, dim) if observation_map is None else observation_map
        if as_instance(reads, "observation_map", ObservationMap).B.shape != (seen, dim):
            raise ValueError(f"observation_map must be ({seen}, {dim}), got {reads.B.shape}")
        values = {
            "drift": drift,
            "process": as_noise(process, "process", dim),
            "observation": as_noise(observation, "observation", seen),
            "gate_std": as_float(gate_std, "gate_std", least=0.0),
            "initial": None if initial is None else as_noise(initial, "initial", dim),
            "observation_map": reads,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def start_noise(self) -> Noise:
        """The noise of z_1: ``initial``, or that of the process where it was not given."""
        return self.process if self.initial is None else self.initial

    @property
    def is_standard(self) -> bool:
        """Whether all noises are diagonal and the first units are observed, as the fast kernels want it."""
        noises = (self.process, self.observation, self.start_noise)
        return all(noise.is_diagonal for noise in noises) and self.observation_map.is_first_units

    @property
    def process_variances(self) -> Floats:
        """The diagonal of Q, (M,)."""
        return self.process.variances(self.drift.latent_dim)

    @property
    def observation_variances(self) -> Floats:
        """The diagonal of R, (N,)."""
        return self.observation.variances(self.drift.observed_dim)

    @property
    def initial_variances(self) -> Floats:
        """The diagonal of the covariance of z_1, (M,)."""
        return self.start_noise.variances(self.drift.latent_dim)

    @property
    def process_covariance(self) -> Floats:
        """Q, (M, M)."""
        return self.process.covariance(self.drift.latent_dim)

    @property
    def observation_covariance(self) -> Floats:
        """R, (N, N)."""
        return self.observation.covariance(self.drift.observed_dim)

    @property
    def initial_covariance(self) -> Floats:
        """The covariance of z_1, (M, M)."""
        return self.start_noise.covariance(self.drift.latent_dim)

    def with_drift(self, drift: Surrogate) -> PALRNN:
        """Return the same noise around another drift, of other units (`Noise.resized`) if it has others."""
        seen, dim = drift.observed_dim, drift.latent_dim
        if dim == self.drift.latent_dim:
            return replace(self, drift=drift)
        if not self.observation_map.is_first_units:
            units = self.drift.latent_dim
            raise ValueError(f"drift must have {units} units, as observation_map has, got {dim}")
        return PALRNN(
            drift,
            self.process.resized(dim, seen),
            self.observation,
            self.gate_std,
            None if self.initial is None else self.initial.resized(dim, seen),
        )

    def with_noise(
        self,
        *,
        process: Noise | float | ArrayLike | None = None,
        observation: Noise | float | ArrayLike | None = None,
        gate_std: float | None = None,
    ) -> PALRNN:
        """Return the same drift with other noise; what is not given stays."""
        return PALRNN(
            self.drift,
            self.process if process is None else process,
            self.observation if observation is None else observation,
            self.gate_std if gate_std is None else gate_std,
            self.initial,
            self.observation_map,
        )

    def sample(self, x1: ArrayLike, steps: int, seed: int = 0, *, inputs: ArrayLike | None = None) -> Sample:
        """Draw one trajectory of ``steps`` states, with its gates and observations.

        The model is the one that filtering conditions on ``x1``: ``states[0]`` is drawn around ``embed(x1)``
        and ``observations[0]`` is ``x1`` itself. A trajectory that diverges ends before that step, and says
        so in ``diverged_at``. A driven drift needs its ``inputs (steps, K)``.
        """
        drift = self.drift
        steps = as_int(steps, "steps", least=2)
        pushes = offsets(drift, checked_inputs(drift, inputs, steps))
        seen = as_shape(x1, "x1", (drift.observed_dim,))
        # a stream of its own: a filter given the same seed must not see the numbers that made its data
        rng = generator(seed, "sample")
        start = drift.embed(seen) + self.start_noise.scaled(rng.standard_normal(drift.latent_dim))
        process = self.process.scaled(rng.standard_normal((steps - 1, drift.latent_dim)))
        observation = self.observation.scaled(rng.standard_normal((steps, drift.observed_dim)))
        uniforms = rng.random((steps - 1, drift.gated))
        if pushes is not None:
            process += pushes[:-1]
        states, codes, diverged = sampled_states(drift, self.gate_std, start, process, uniforms)
        x = self.observation_map(states) + observation[: len(states)]
        x[:1] = seen
        return Sample(states, diverged, codes=codes, observations=x)

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that copies are read-only too
        noises = (self.process, self.observation, self.gate_std, self.initial, self.observation_map)
        return PALRNN, (self.drift, *noises)

    def __repr__(self) -> str:
        more = "" if self.initial is None else f", initial={self.initial}"
        more += "" if self.observation_map.is_first_units else f", {self.observation_map!r}"
        return (
            f"PALRNN({self.drift!r}, process={self.process}, observation={self.observation}, "
            f"gate_std={self.gate_std:.4g}{more})"
        )


def gate_probabilities(inputs: Floats, gate_std: float) -> Floats:
    """Return the chance Phi(u / gate_std) of each gate to be open (eq. probit); 0 or 1 where it is hard."""
    from scipy.special import ndtr

    return np.asarray(ndtr(inputs / gate_std) if gate_std > 0 else np.where(inputs > 0, 1.0, 0.0))


@singledispatch
def sampled_states(
    drift: Surrogate, gate_std: float, start: Floats, process: Floats, uniforms: Floats
) -> tuple[Floats, NDArray[np.bool_], int | None]:
    """Return states ``(T, M)``, codes ``(T-1, P)`` and the step at which the run diverged, or None.

    ``process (T-1, M)`` is the noise itself, and what inputs add to it; a gate opens where its number of
    ``uniforms (T-1, P)`` is below its probability. Both results end before the state that diverged.
    """
    steps, piece = len(process) + 1, pieces(drift)
    states, codes = np.empty((steps, len(start))), np.empty(uniforms.shape, dtype=np.bool_)
    z = start
    for t in range(steps):
        if not np.abs(z).max() <= BOUND:
            return states[:t], codes[: max(0, t - 1)], t
        states[t] = z
        if t < steps - 1:
            codes[t] = uniforms[t] < gate_probabilities(gate_inputs(drift, z), gate_std)
            J, b = piece(codes[t])
            z = J @ z + b + process[t]
    return states, codes, None


@sampled_states.register
def _(
    drift: ALRNN, gate_std: float, start: Floats, process: Floats, uniforms: Floats
) -> tuple[Floats, NDArray[np.bool_], int | None]:
    states = np.empty((len(process) + 1, drift.latent_dim))
    codes = np.empty(uniforms.shape, dtype=np.bool_)
    parameters = (drift.A, drift.W, drift.h, drift.gated, gate_std)
    at = kernels.sample(*parameters, start, BOUND, process, uniforms, states, codes)
    return (states, codes, None) if at < 0 else (states[:at], codes[: max(0, at - 1)], at)
