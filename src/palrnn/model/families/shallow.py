"""The shallow piecewise-linear RNN (Hess et al., 2023): z' = A z + W1 relu(W2 z + h2) + h1.

As a `Surrogate`: G = W2, g = h2, J(c) = A + W1 D(c) W2, b(c) = W1 D(c) h2 + h1, one gate for each of H hidden
units. There may be more gates than latent units, and theta = [A, W1 row-major, W2 row-major, h1, h2] is in
the gates, too. Driven by inputs, it has + C s, and C row-major at the end of theta.

The clipped form, z' = A z + W1 (relu(W2 z + h2) - relu(W2 z)) + h1, cannot run away where |A| < 1: what the
hidden units add is bounded by |h2|. It has two gates for each hidden unit, G = [W2, W2] and g = [h2, 0].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_int, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.model import engine
from palrnn.model.engine import EmbeddedNetwork
from palrnn.model.families.alrnn import initial_diagonal
from palrnn.model.kernels import shallow as kernels
from palrnn.model.surrogate import Arrays, register_family


@dataclass(frozen=True, eq=False, repr=False)
class ShallowPLRNN(EmbeddedNetwork):
    """A shallow PLRNN with M latent units, the first N observed, and H hidden units, which are its gates.

    ``A (M,)`` is the diagonal of the linear part, ``W1 (M, H)`` and ``W2 (H, M)`` lead from and to the hidden
    units, ``h1 (M,)`` and ``h2 (H,)`` are biases, and ``E (M, N)`` embeds an observation (None: all units are
    observed). ``C (M, K)`` lets K external inputs in; None means that there are none. Immutable; all arrays
    are float64 and read-only.
    """

    A: Floats
    W1: Floats
    W2: Floats
    h1: Floats
    h2: Floats
    E: Floats | None = None
    C: Floats | None = None

    #: Gates for each hidden unit.
    gates_per_hidden: ClassVar[int] = 1

    def __post_init__(self) -> None:
        A = as_shape(self.A, "A", (None,))
        dim = A.shape[0]
        if dim < 1:
            raise ValueError("A must hold at least one unit, got shape (0,)")
        W1 = as_shape(self.W1, "W1", (dim, None))
        hidden = W1.shape[1]
        W2, h1 = as_shape(self.W2, "W2", (hidden, dim)), as_shape(self.h1, "h1", (dim,))
        h2 = as_shape(self.h2, "h2", (hidden,))
        E = np.eye(dim) if self.E is None else as_shape(self.E, "E", (dim, None))
        self._keep(A=A, W1=W1, W2=W2, h1=h1, h2=h2, E=E)

    @property
    def hidden(self) -> int:
        """H, the number of hidden units."""
        return int(self.h2.shape[0])

    @property
    def gated(self) -> int:
        """P, the number of gates: one for each hidden unit, or two in the clipped form."""
        return self.gates_per_hidden * self.hidden

    @property
    def theta(self) -> Floats:
        """The drift parameters ``[A, W1, W2, h1, h2, C]``, row-major, of length 2 M (H + 1) + H + M K."""
        parts = [self.A, self.W1.ravel(), self.W2.ravel(), self.h1, self.h2]
        return np.concatenate(parts if self.C is None else [*parts, self.C.ravel()])

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same network with other drift parameters (the embedding stays)."""
        M, H = self.latent_dim, self.hidden
        values = as_shape(theta, "theta", (2 * M * (H + 1) + H + M * self.input_dim,))
        A, W1, W2, h1, h2, C = np.split(values, np.cumsum([M, M * H, M * H, M, H]))
        return type(self)(A, W1.reshape(M, H), W2.reshape(H, M), h1, h2, self.E, C.reshape(M, -1))

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the network of `arrays`."""
        parts = [arrays[name] for name in ("A", "W1", "W2", "h1", "h2", "E")]
        return cls(*parts, *([arrays["C"]] if "C" in arrays else []))

    def gate_map(self) -> tuple[Floats, Floats]:
        """Return G = W2 and g = h2."""
        return self.W2, self.h2

    def _slopes(self, codes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return the slopes of the hidden units in W2 z, and in h2, both ``(..., H)``."""
        slopes = np.asarray(codes, dtype=np.float64)
        return slopes, slopes

    def affine(self, codes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return ``J = A + W1 D W2`` and ``b = W1 D h2 + h1``, with the slopes D of ``codes (..., P)``."""
        along, across = self._slopes(codes)
        J = (self.W1 * along[..., None, :]) @ self.W2
        diagonal = np.arange(self.latent_dim)
        J[..., diagonal, diagonal] += self.A
        return J, (across * self.h2) @ self.W1.T + self.h1

    def pullback(self, z: Floats, codes: NDArray[Any], r: Floats) -> Floats:
        """Return r^T dF/dtheta = [r z, r y^T, (W1^T r D) z^T, r, W1^T r D], y what the hidden units give.

        The entries of C are not among them.
        """
        along, across = self._slopes(codes)
        back = r @ self.W1
        y = along * (z @ self.W2.T) + across * self.h2
        shape = np.broadcast_shapes(z.shape[:-1], r.shape[:-1], along.shape[:-1])
        W1 = r[..., :, None] * y[..., None, :]
        W2 = (back * along)[..., :, None] * z[..., None, :]
        parts = [r * z, W1.reshape(*W1.shape[:-2], -1), W2.reshape(*W2.shape[:-2], -1), r, back * across]
        return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)

    def gate_pullback(self, z: Floats, r: Floats) -> Floats:
        """Return r^T d(G z + g)/dtheta for ``z (..., M)`` and ``r (..., P)``: only W2 and h2 are in it."""
        return self._gate_rows(z, r, r)

    def _gate_rows(self, z: Floats, in_W2: Floats, in_h2: Floats) -> Floats:
        W2 = in_W2[..., :, None] * z[..., None, :]
        shape = W2.shape[:-2]
        before = np.zeros((*shape, self.latent_dim * (1 + self.hidden)))
        h1, h2 = np.zeros((*shape, self.latent_dim)), np.broadcast_to(in_h2, (*shape, self.hidden))
        return np.concatenate([before, W2.reshape(*shape, -1), h1, h2], axis=-1)

    @classmethod
    def initial(cls, observed_dim: int, *, latent_dim: int, gated: int, init_std: float, seed: int) -> Self:
        """Return a random start for training.

        ``h1 = 0`` and ``W1 ~ N(0, init_std^2)``; ``W2 ~ U(-1/sqrt(M), 1/sqrt(M))`` and ``h2 ~ U(-1, 1)``, so
        that thresholds cross standardised data; ``A`` and ``E`` as in `initial_alrnn`.
        """
        pin_blas()  # the last bit of a product may depend on the number of threads
        dim = as_int(latent_dim, "latent_dim", least=1)
        seen = as_int(observed_dim, "observed_dim", least=1, most=dim)
        hidden, left = divmod(as_int(gated, "gated"), cls.gates_per_hidden)
        if left:
            raise ValueError(f"gated must be twice the number of hidden units, got {gated}")
        rng = generator(seed)
        A = initial_diagonal(dim, rng)
        W1 = as_float(init_std, "init_std", least=0.0) * rng.standard_normal((dim, hidden))
        W2 = rng.uniform(-1.0, 1.0, (hidden, dim)) / np.sqrt(dim)
        h2 = rng.uniform(-1.0, 1.0, hidden)
        E = rng.uniform(-1.0, 1.0, (dim, seen)) / np.sqrt(seen)
        return cls(A, W1, W2, np.zeros(dim), h2, E)


@dataclass(frozen=True, eq=False, repr=False)
class ClippedShallowPLRNN(ShallowPLRNN):
    """The clipped shallow PLRNN, z' = A z + W1 (relu(W2 z + h2) - relu(W2 z)) + h1.

    It is bounded where all abs(A) < 1. Its P = 2 H gates are those of W2 z + h2, then those of W2 z.
    """

    gates_per_hidden: ClassVar[int] = 2

    def gate_map(self) -> tuple[Floats, Floats]:
        """Return G = [W2, W2] and g = [h2, 0]."""
        return np.concatenate([self.W2, self.W2]), np.concatenate([self.h2, np.zeros(self.hidden)])

    def _slopes(self, codes: NDArray[Any]) -> tuple[Floats, Floats]:
        shifted, plain = np.split(np.asarray(codes, dtype=np.float64), 2, axis=-1)
        return shifted - plain, shifted

    def gate_pullback(self, z: Floats, r: Floats) -> Floats:
        """Return r^T d(G z + g)/dtheta for ``z (..., M)`` and ``r (..., P)``: only W2 and h2 are in it."""
        shifted, plain = np.split(r, 2, axis=-1)
        return self._gate_rows(z, shifted + plain, shifted)


register_family("shallow", ShallowPLRNN)
register_family("clipped-shallow", ClippedShallowPLRNN)


engine.rollout_from.register(ShallowPLRNN, engine.rollout_in_blocks)


@engine.step.register
def _step(model: ShallowPLRNN, z: Floats) -> Floats:
    u = z @ np.ascontiguousarray(model.W2.T)
    y = np.maximum(u + model.h2, 0.0)
    if model.gates_per_hidden == 2:
        y -= np.maximum(u, 0.0)
    return np.asarray(model.A * z + y @ np.ascontiguousarray(model.W1.T) + model.h1)


@engine.advance.register
def _advance(model: ShallowPLRNN, z: Floats, steps: int, offsets: Floats | None = None) -> Floats:
    states, biases = np.empty((steps, *z.shape)), engine.biases(model.h1, offsets, axes=2)
    clipped, hidden = model.gates_per_hidden == 2, np.empty(model.hidden)
    network = (model.A, model.W1, model.W2, biases, model.h2, clipped)
    kernels.advance(*network, np.ascontiguousarray(z), hidden, states)
    return states
