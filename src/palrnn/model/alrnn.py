"""The almost-linear recurrent network (AL-RNN): z' = A z + W phi*(z) + h."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_floats, as_int, as_shape, frozen
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.model import kernels
from palrnn.model.trajectory import BOUND, DivergenceWarning, Trajectory


@dataclass(frozen=True, eq=False)
class ALRNN:
    """An AL-RNN with M latent units, the first N observed and the last P gated (eq. alrnn).

    ``A (M,)`` is the diagonal of the linear part, ``W (M, M)`` acts on phi*(z), ``h (M,)`` is the bias,
    ``E (M, N)`` embeds an observation and ``gated`` is P, from 0 (linear) to M (a full piecewise-linear RNN).
    Immutable; all arrays are float64 and read-only.
    """

    A: Floats
    W: Floats
    h: Floats
    E: Floats
    gated: int

    def __post_init__(self) -> None:
        A = as_shape(self.A, "A", (None,))
        dim = A.shape[0]
        if dim < 1:
            raise ValueError("A must hold at least one unit, got shape (0,)")
        W, h = as_shape(self.W, "W", (dim, dim)), as_shape(self.h, "h", (dim,))
        E = as_shape(self.E, "E", (dim, None))
        if not 1 <= E.shape[1] <= dim:
            raise ValueError(f"E must be (M, N) with 1 <= N <= M = {dim}, got {E.shape}")
        for name, value in (("A", A), ("W", W), ("h", h), ("E", E)):
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "gated", as_int(self.gated, "gated", most=dim))

    @property
    def latent_dim(self) -> int:
        """M, the number of latent units."""
        return int(self.A.shape[0])

    @property
    def observed_dim(self) -> int:
        """N, the number of observed coordinates."""
        return int(self.E.shape[1])

    @property
    def theta(self) -> Floats:
        """The drift parameters ``[A, W row-major, h]``, of length p = M^2 + 2 M."""
        return np.concatenate([self.A, self.W.ravel(), self.h])

    def with_theta(self, theta: ArrayLike) -> ALRNN:
        """Return the same network with other drift parameters (the embedding stays)."""
        dim = self.latent_dim
        values = as_shape(theta, "theta", (dim * dim + 2 * dim,))
        A, W, h = np.split(values, [dim, dim + dim * dim])
        return ALRNN(A, W.reshape(dim, dim), h, self.E, self.gated)

    def embed(self, x: ArrayLike) -> Floats:
        """Return the latent state of an observation: ``E x`` with its first N entries set to ``x``.

        ``x (..., N) -> (..., M)`` (eq. alrnn_init_embed).
        """
        seen = self._checked(x, "x", self.observed_dim)
        z = seen @ self.E.T
        z[..., : self.observed_dim] = seen
        return z

    def gates(self, z: ArrayLike) -> Floats:
        """Return the diagonal of D(c) at ``z (..., M)``: ones, then the code bits (eq. Dc)."""
        state = self._checked(z, "z", self.latent_dim)
        gates = np.ones_like(state)
        free = self.latent_dim - self.gated
        gates[..., free:] = state[..., free:] > 0
        return gates

    def codes(self, z: ArrayLike) -> NDArray[np.bool_]:
        """Return the switching code ``c_j = 1{z_{M-P+j} > 0}`` of each state, ``(..., M) -> (..., P)``."""
        state = self._checked(z, "z", self.latent_dim)
        return state[..., self.latent_dim - self.gated :] > 0

    def step(self, z: ArrayLike) -> Floats:
        """Return the next state of each ``z (..., M)``."""
        state = self._checked(z, "z", self.latent_dim)
        after: Floats = self.A * state + (self.gates(state) * state) @ self.W.T + self.h
        return after

    def jacobian(self, z: ArrayLike) -> Floats:
        """Return dF/dz = A + W D(c) at each ``z (..., M)``, shape ``(..., M, M)``; zero slope at the kink."""
        gates = self.gates(z)
        jacobian = self.W * gates[..., None, :]
        diagonal = np.arange(self.latent_dim)
        jacobian[..., diagonal, diagonal] += self.A
        return jacobian

    def rollout(self, x1: ArrayLike, steps: int, discard: int = 0) -> Trajectory:
        """Let the network run freely from ``x1 (N,)``: ``(steps, M)`` states after ``discard`` steps.

        With ``discard=0`` the first state is ``embed(x1)``. If the state diverges, the trajectory ends
        before, its ``diverged_at`` tells after how many steps from ``x1``, and a `DivergenceWarning` is
        given.
        """
        return self._run(self.embed(as_shape(x1, "x1", (self.observed_dim,))), steps, discard)

    def rollout_from(self, z1: ArrayLike, steps: int, discard: int = 0) -> Trajectory:
        """Like `rollout`, from a latent state ``z1 (M,)``."""
        return self._run(as_shape(z1, "z1", (self.latent_dim,)), steps, discard)

    def _run(self, start: Floats, steps: int, discard: int) -> Trajectory:
        steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
        states = np.empty((steps, self.latent_dim))
        diverged = kernels.rollout(self.A, self.W, self.h, self.gated, start, discard, BOUND, states)
        if diverged < 0:
            return Trajectory(states)
        warnings.warn(f"the rollout diverged after {diverged} steps", DivergenceWarning, stacklevel=3)
        return Trajectory(states[: max(0, diverged - discard)], diverged)

    def _checked(self, value: ArrayLike, name: str, dim: int) -> Floats:
        array = as_floats(value, name)
        if array.shape[-1:] != (dim,):
            raise ValueError(f"{name} must have {dim} entries in its last axis, got shape {array.shape}")
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that copies are read-only too
        return ALRNN, (self.A, self.W, self.h, self.E, self.gated)

    def __repr__(self) -> str:
        return f"ALRNN(latent_dim={self.latent_dim}, observed_dim={self.observed_dim}, gated={self.gated})"


def initial_alrnn(
    latent_dim: int, observed_dim: int, gated: int, *, init_std: float = 0.01, seed: int = 0
) -> ALRNN:
    """Return a random network to start training from (paper, "Parameter initialization").

    ``h = 0``; ``W ~ N(0, init_std^2)``; ``A`` the diagonal of ``K / max eig(K)`` with ``K = R^T R / M + I``
    and standard normal ``R``; ``E ~ U(-1/sqrt(N), 1/sqrt(N))``.
    """
    pin_blas()  # the last bit of a product may depend on the number of threads
    dim = as_int(latent_dim, "latent_dim", least=1)
    seen = as_int(observed_dim, "observed_dim", least=1, most=dim)
    rng = generator(seed)
    R = rng.standard_normal((dim, dim))
    K = R.T @ R / dim + np.eye(dim)
    A = np.diag(K) / np.linalg.eigvalsh(K)[-1]
    W = as_float(init_std, "init_std", least=0.0) * rng.standard_normal((dim, dim))
    E = rng.uniform(-1.0, 1.0, (dim, seen)) / np.sqrt(seen)
    return ALRNN(A, W, np.zeros(dim), E, as_int(gated, "gated", most=dim))
