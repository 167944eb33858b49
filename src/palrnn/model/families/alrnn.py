"""The almost-linear recurrent network (AL-RNN): z' = A z + W phi*(z) + h, driven or not (+ C s).

As a `Surrogate`: G picks the last P units, g = 0, J(c) = A + W D(c) (eq. Dc), b = h. Its parameters
are ``theta = [A, W row-major, h, C row-major]``, or the same by unit, in rows ``[A_i, W_i, h_i, C_i]``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_int, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.model import engine
from palrnn.model.engine import EmbeddedNetwork
from palrnn.model.kernels import alrnn as kernels
from palrnn.model.surrogate import Arrays, register_family


@dataclass(frozen=True, eq=False, repr=False)
class ALRNN(EmbeddedNetwork):
    """An AL-RNN with M latent units, the first N observed and the last P gated (eq. alrnn).

    ``A (M,)`` is the diagonal of the linear part, ``W (M, M)`` acts on phi*(z), ``h (M,)`` is the bias,
    ``E (M, N)`` embeds an observation and ``gated`` is P, from 0 (linear) to M (a full piecewise-linear RNN).
    ``C (M, K)`` lets K external inputs in; None means that there are none. Immutable; all arrays are float64
    and read-only.
    """

    A: Floats
    W: Floats
    h: Floats
    E: Floats
    gated: int
    C: Floats | None = None

    def __post_init__(self) -> None:
        A = as_shape(self.A, "A", (None,))
        dim = A.shape[0]
        if dim < 1:
            raise ValueError("A must hold at least one unit, got shape (0,)")
        W, h = as_shape(self.W, "W", (dim, dim)), as_shape(self.h, "h", (dim,))
        E = as_shape(self.E, "E", (dim, None))
        self._keep(A=A, W=W, h=h, E=E)
        object.__setattr__(self, "gated", as_int(self.gated, "gated", most=dim))

    @property
    def theta(self) -> Floats:
        """The drift parameters ``[A, W row-major, h, C row-major]``, of length p = M^2 + 2 M + M K."""
        parts = [self.A, self.W.ravel(), self.h]
        return np.concatenate(parts if self.C is None else [*parts, self.C.ravel()])

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same network with other drift parameters (the embedding stays)."""
        dim = self.latent_dim
        values = as_shape(theta, "theta", (dim * (dim + 2 + self.input_dim),))
        A, W, h, C = np.split(values, np.cumsum([dim, dim * dim, dim]))
        return replace(self, A=A, W=W.reshape(dim, dim), h=h, C=C.reshape(dim, -1))

    @property
    def rows(self) -> Floats:
        """The drift parameters by unit, ``(M, M + 2 + K)``: row i is ``[A_i, W_i, h_i, C_i]``."""
        parts = [self.A, self.W, self.h]
        return np.column_stack(parts if self.C is None else [*parts, self.C])

    def with_rows(self, rows: ArrayLike) -> Self:
        """Return the same network with the rows ``(M, M + 2 + K)``."""
        dim = self.latent_dim
        values = as_shape(rows, "rows", (dim, dim + 2 + self.input_dim))
        A, W, h, C = values[:, 0], values[:, 1 : dim + 1], values[:, dim + 1], values[:, dim + 2 :]
        return replace(self, A=A, W=W, h=h, C=C)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> ALRNN:
        """Return the network of `arrays`."""
        parts = (arrays["A"], arrays["W"], arrays["h"], arrays["E"], np.asarray(arrays["gated"]).item())
        return cls(*parts, arrays.get("C"))

    def gate_map(self) -> tuple[Floats, Floats]:
        """Return G, which picks the last P units, and g = 0."""
        return np.eye(self.latent_dim)[self.latent_dim - self.gated :], np.zeros(self.gated)

    def affine(self, codes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return ``J = A + W D(c)`` and ``b = h`` for each of ``codes (..., P)``."""
        J = self.W * self._gates(codes)[..., None, :]
        diagonal = np.arange(self.latent_dim)
        J[..., diagonal, diagonal] += self.A
        return J, np.broadcast_to(self.h, J.shape[:-1])

    def pullback(self, z: Floats, codes: NDArray[Any], r: Floats) -> Floats:
        """Return r^T dF/dtheta = [r z, r (D(c) z)^T row-major, r], without the entries of C."""
        z, gates, r = np.broadcast_arrays(z, self._gates(codes), r)
        outer = r[..., :, None] * (gates * z)[..., None, :]
        return np.concatenate([r * z, outer.reshape(*r.shape[:-1], -1), r], axis=-1)

    def gates(self, z: ArrayLike) -> Floats:
        """Return the diagonal of D(c) at ``z (..., M)``: ones, then the code bits (eq. Dc)."""
        return self._gates(self.codes(z))

    def _gates(self, codes: NDArray[Any]) -> Floats:
        gates = np.ones((*np.shape(codes)[:-1], self.latent_dim))
        gates[..., self.latent_dim - self.gated :] = codes
        return gates

    @classmethod
    def initial(cls, observed_dim: int, *, latent_dim: int, gated: int, init_std: float, seed: int) -> ALRNN:
        """Return the random start of training, see `initial_alrnn`."""
        return initial_alrnn(latent_dim, observed_dim, gated, init_std=init_std, seed=seed)


register_family("alrnn", ALRNN)


def initial_diagonal(dim: int, rng: np.random.Generator) -> Floats:
    """Return the diagonal of ``K / max eig(K)`` with ``K = R^T R / M + I`` and standard normal ``R``."""
    R = rng.standard_normal((dim, dim))
    K = R.T @ R / dim + np.eye(dim)
    return np.asarray(np.diag(K) / np.linalg.eigvalsh(K)[-1])


def initial_alrnn(
    latent_dim: int, observed_dim: int, gated: int, *, init_std: float = 0.01, seed: int = 0
) -> ALRNN:
    """Return a random network to start training from (paper, "Parameter initialization").

    ``h = 0``; ``W ~ N(0, init_std^2)``; ``A`` is an `initial_diagonal`; ``E ~ U(-1/sqrt(N), 1/sqrt(N))``.
    """
    pin_blas()  # the last bit of a product may depend on the number of threads
    dim = as_int(latent_dim, "latent_dim", least=1)
    seen = as_int(observed_dim, "observed_dim", least=1, most=dim)
    rng = generator(seed)
    A = initial_diagonal(dim, rng)
    W = as_float(init_std, "init_std", least=0.0) * rng.standard_normal((dim, dim))
    E = rng.uniform(-1.0, 1.0, (dim, seen)) / np.sqrt(seen)
    return ALRNN(A, W, np.zeros(dim), E, as_int(gated, "gated", most=dim))


@engine.gate_inputs.register
def _gate_inputs(model: ALRNN, z: Floats) -> Floats:
    return z[..., model.latent_dim - model.gated :]


@engine.step.register
def _step(model: ALRNN, z: Floats) -> Floats:
    rectified, free = z.copy(), model.latent_dim - model.gated
    np.maximum(rectified[..., free:], 0.0, out=rectified[..., free:])
    return np.asarray(model.A * z + rectified @ np.ascontiguousarray(model.W.T) + model.h)


engine.rollout_from.register(ALRNN, engine.rollout_in_blocks)


@engine.advance.register
def _advance(model: ALRNN, z: Floats, steps: int, offsets: Floats | None = None) -> Floats:
    states, (count, dim) = np.empty((steps, *z.shape)), z.shape
    biases = engine.biases(model.h, offsets, axes=2)
    now, active, after = (kernels.padded(count, dim) for _ in range(3))
    now[:count, :dim] = z
    across = kernels.padded(dim + 1, dim)  # the last rows stay zero
    across[:dim, :dim] = model.W.T
    kernels.advance(model.A, across, biases, model.gated, now, active, after, states)
    return states
