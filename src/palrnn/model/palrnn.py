"""The probabilistic AL-RNN (PAL-RNN): a switching state-space model around an AL-RNN drift."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_floats, as_int, as_shape, frozen
from palrnn.engine.seeds import generator
from palrnn.model import kernels
from palrnn.model.alrnn import ALRNN
from palrnn.model.trajectory import BOUND, DivergenceWarning, Trajectory


def drift_of(model: Any) -> ALRNN:
    """Return an AL-RNN itself, or the drift of a PAL-RNN; refuse anything else."""
    drift = model.drift if isinstance(model, PALRNN) else model
    if not isinstance(drift, ALRNN):
        raise ValueError(f"model must be an ALRNN or a PALRNN, got {type(model).__name__}")
    return drift


class Sample(NamedTuple):
    """What a PAL-RNN drew: states (T, M), codes (T-1, P), observations (T, N) with the given x1 first."""

    states: Trajectory
    codes: NDArray[np.bool_]
    observations: Floats


@dataclass(frozen=True, eq=False)
class PALRNN:
    """A probabilistic AL-RNN (paper, "PAL-RNN"), with deviations in the coordinates of the drift.

        c_{t,j} ~ Bernoulli(Phi(z_{t,M-P+j} / gate_std))
        z_{t+1} ~ N((A + W D(c_t)) z_t + h, Q)
        x_t     ~ N(z_t[:N], R)

    ``process_std`` and ``observation_std`` are single deviations (isotropic) or one per coordinate, ``(M,)``
    and ``(N,)``. A segment starts at ``z_1 ~ N(embed(x_1), initial_std^2 I)``; ``initial_std`` is
    ``process_std`` unless given. ``gate_std = 0`` means hard gates.
    """

    drift: ALRNN
    process_std: float | Floats
    observation_std: float | Floats
    gate_std: float
    initial_std: float | Floats | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.drift, ALRNN):
            raise ValueError(f"drift must be an ALRNN, got {type(self.drift).__name__}")
        dim, seen = self.drift.latent_dim, self.drift.observed_dim
        object.__setattr__(self, "process_std", _deviation(self.process_std, "process_std", dim))
        object.__setattr__(self, "observation_std", _deviation(self.observation_std, "observation_std", seen))
        object.__setattr__(self, "gate_std", as_float(self.gate_std, "gate_std", least=0.0))
        if self.initial_std is not None:
            object.__setattr__(self, "initial_std", _deviation(self.initial_std, "initial_std", dim))

    @property
    def process_variances(self) -> Floats:
        """The diagonal of Q, (M,)."""
        return np.broadcast_to(np.square(self.process_std), (self.drift.latent_dim,)).copy()

    @property
    def observation_variances(self) -> Floats:
        """The diagonal of R, (N,)."""
        return np.broadcast_to(np.square(self.observation_std), (self.drift.observed_dim,)).copy()

    @property
    def initial_variances(self) -> Floats:
        """The diagonal of the covariance of z_1, (M,)."""
        std = self.process_std if self.initial_std is None else self.initial_std
        return np.broadcast_to(np.square(std), (self.drift.latent_dim,)).copy()

    def with_drift(self, drift: ALRNN) -> PALRNN:
        """Return the same noise around another drift."""
        return replace(self, drift=drift)

    def sample(self, x1: ArrayLike, steps: int, seed: int = 0) -> Sample:
        """Draw one trajectory of ``steps`` states, with its gates and observations.

        The model is the one that filtering conditions on ``x1``: ``states[0]`` is drawn around ``embed(x1)``
        and ``observations[0]`` is ``x1`` itself. A trajectory that diverges ends before that step, and says
        so as in `ALRNN.rollout`.
        """
        drift = self.drift
        steps = as_int(steps, "steps", least=2)
        seen = as_shape(x1, "x1", (drift.observed_dim,))
        # a stream of its own: a filter given the same seed must not see the numbers that made its data
        rng = generator(seed, "sample")
        start = drift.embed(seen) + np.sqrt(self.initial_variances) * rng.standard_normal(drift.latent_dim)
        process = np.sqrt(self.process_variances) * rng.standard_normal((steps - 1, drift.latent_dim))
        observation = np.sqrt(self.observation_variances) * rng.standard_normal((steps, drift.observed_dim))
        uniforms = rng.random((steps - 1, drift.gated))
        states, x = np.empty((steps, drift.latent_dim)), np.empty((steps, drift.observed_dim))
        codes = np.empty((steps - 1, drift.gated), dtype=np.bool_)
        parameters = (drift.A, drift.W, drift.h, drift.gated, self.gate_std)
        noises = (process, observation, uniforms)
        diverged = kernels.sample(*parameters, start, BOUND, *noises, states, codes, x)
        x[0] = seen
        if diverged < 0:
            return Sample(Trajectory(states), codes, x)
        warnings.warn(
            f"the sampled trajectory diverged after {diverged} steps", DivergenceWarning, stacklevel=2
        )
        return Sample(Trajectory(states[:diverged], diverged), codes[: max(0, diverged - 1)], x[:diverged])

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that copies are read-only too
        noises = (self.process_std, self.observation_std, self.gate_std, self.initial_std)
        return PALRNN, (self.drift, *noises)

    def __repr__(self) -> str:
        return (
            f"PALRNN({self.drift!r}, process_std={_shown(self.process_std)}, "
            f"observation_std={_shown(self.observation_std)}, gate_std={self.gate_std:.4g})"
        )


def _deviation(value: float | ArrayLike, name: str, dim: int) -> float | Floats:
    if np.ndim(value) == 0:
        return as_float(value.item() if isinstance(value, np.ndarray) else value, name, above=0.0)
    array = as_floats(value, name)
    if array.shape != (dim,):
        raise ValueError(f"{name} must be one number or have shape ({dim},), got {array.shape}")
    for entry in array:
        as_float(float(entry), name, above=0.0)
    return frozen(array)


def _shown(value: float | Floats) -> str:
    return f"{value:.4g}" if np.ndim(value) == 0 else f"{np.round(value, 4).tolist()}"
