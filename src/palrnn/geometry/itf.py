"""The curvature that teacher forcing sees: the ITF Fisher, as a matrix, a trace, or an operator.

    I_ITF = 1/(T-1) sum_t (B S_{t+1})^T Lambda^{-1} (B S_{t+1})   (eq. tfgn)

with S_t = dz_t / dtheta along the forced rollout. It is the generalised Gauss-Newton matrix of the
teacher-forcing loss read as a Gaussian pseudo-likelihood, per step, conditioned on the one code path of the
forced rollout. Its rank is at most ``(T - 1) N``. The dense matrix costs O(T M^4); a product with a
vector costs only O(T M^2), so leading eigenpairs are within reach when p x p is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, eigsh

from palrnn.engine.checks import HUGE, Floats, as_float, as_floats, as_int, as_series, frozen
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.geometry import itf_kernels
from palrnn.model import ALRNN, PALRNN
from palrnn.model.trajectory import BOUND

# rows of sensitivities held at once, in numbers: 32 MB whatever the length of the series
_CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class ITFOperator:
    """The ITF Fisher of ``model`` along the forced rollout on ``x (T, N)``, without its p x p matrix.

    ``operator @ v`` multiplies by a vector ``(p,)`` or a matrix ``(p, k)``; `trace`, `leading` and `dense`
    give more. ``alpha < 1`` is generalised teacher forcing. ``observation_std`` is one deviation, or one per
    observed coordinate.
    """

    model: ALRNN
    x: Floats
    tau: int
    observation_std: float | Floats
    alpha: float = 1.0
    _states: Floats = field(init=False, repr=False)
    _scale: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        model = self.model.drift if isinstance(self.model, PALRNN) else self.model
        if not isinstance(model, ALRNN):
            raise ValueError(f"model must be an ALRNN or a PALRNN, got {type(model).__name__}")
        x = frozen(as_series(self.x, dim=model.observed_dim))
        tau, alpha = as_int(self.tau, "tau", least=1), as_float(self.alpha, "alpha", least=0.0, most=1.0)
        std = as_floats(self.observation_std, "observation_std")
        if std.shape not in ((), (model.observed_dim,)) or (std < 1.0 / HUGE).any():
            wanted = f"one number or ({model.observed_dim},)"
            raise ValueError(f"observation_std must be positive, {wanted}, got {self.observation_std}")
        states = np.empty((len(x) - 1, model.latent_dim))
        diverged = itf_kernels.forced_states(
            model.A, model.W, model.h, model.gated, model.embed(x[0]), x, tau, alpha, BOUND, states
        )
        if diverged >= 0:
            raise ValueError(f"the forced rollout diverged at step {diverged}: the ITF Fisher is not defined")
        scale = np.full(model.observed_dim, 1.0) / (std * np.sqrt(len(x) - 1))
        values = {"model": model, "x": x, "tau": tau, "alpha": alpha, "_states": states, "_scale": scale}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, int]:
        """``(p, p)``, with p = M^2 + 2 M."""
        size = self.model.latent_dim * (self.model.latent_dim + 2)
        return size, size

    @property
    def max_rank(self) -> int:
        """What the rank cannot exceed: the number of predictions ``(T - 1) N``, and p."""
        return min(self._states.shape[0] * self.model.observed_dim, self.shape[0])

    def __matmul__(self, v: ArrayLike) -> Floats:
        vectors = as_floats(v, "v")
        if vectors.ndim not in (1, 2) or vectors.shape[0] != self.shape[0]:
            raise ValueError(f"v must be ({self.shape[0]},) or ({self.shape[0]}, k), got {vectors.shape}")
        pin_blas()
        columns = [self._product(np.ascontiguousarray(column)) for column in np.atleast_2d(vectors.T)]
        return columns[0] if vectors.ndim == 1 else np.stack(columns, axis=1)

    def _product(self, v: Floats) -> Floats:
        model, policy = self.model, (self._states, self.tau, self.alpha, self._scale)
        forward, product = np.empty((len(self._states), model.observed_dim)), np.empty(self.shape[0])
        itf_kernels.tangent(model.A, model.W, model.gated, *policy, v, forward)
        itf_kernels.cotangent(model.A, model.W, model.gated, *policy, forward, product)
        return product

    def trace(self) -> float:
        """Return the exact trace; memory O(M p), no p x p matrix."""
        pin_blas()
        model = self.model
        policy = (self._states, self.tau, self.alpha, self._scale)
        return float(itf_kernels.sensitivity_trace(model.A, model.W, model.gated, *policy))

    def leading(self, k: int = 50, *, seed: int = 0) -> tuple[Floats, Floats]:
        """Return the ``k`` largest eigenvalues, largest first, and their vectors ``(p, k)``, by Lanczos."""
        pin_blas()
        k = as_int(k, "k", least=1, most=self.shape[0] - 1)
        start = generator(seed).standard_normal(self.shape[0])
        operator = LinearOperator(self.shape, matvec=lambda v: self._product(v.ravel()), dtype=np.float64)
        values, vectors = eigsh(operator, k=k, which="LA", v0=start)
        return values[::-1].copy(), vectors[:, ::-1].copy()

    def dense(self) -> Floats:
        """Return the matrix ``(p, p)``, symmetric and positive semidefinite by construction."""
        pin_blas()
        total = np.zeros(self.shape)
        for rows in self._rows():
            total += rows.T @ rows
        return total

    def _rows(self) -> Iterator[Floats]:
        """Yield the factor G of I = G^T G in chunks ``(steps N, p)`` of bounded size."""
        model, steps = self.model, len(self._states)
        seen, size = model.observed_dim, self.shape[0]
        chunk = min(steps, max(1, _CHUNK // (seen * size)))
        S = np.zeros((model.latent_dim, size))
        for begin in range(0, steps, chunk):
            rows = np.empty((min(chunk, steps - begin), seen, size))
            itf_kernels.sensitivity_rows(
                model.A, model.W, model.gated, self._states, begin, self.tau, self.alpha, self._scale, S, rows
            )
            yield rows.reshape(-1, size)

    def __repr__(self) -> str:
        policy = f"tau={self.tau}, alpha={self.alpha:g}"
        return f"ITFOperator({self.model!r}, steps={len(self.x)}, {policy}, p={self.shape[0]})"


def itf_fisher(
    model: ALRNN | PALRNN, x: ArrayLike, tau: int, observation_std: float | ArrayLike, *, alpha: float = 1.0
) -> Floats:
    """Return the ITF Fisher ``(p, p)`` of the drift parameters [A, W row-major, h], per step (eq. tfgn).

    ``x (T, N)`` is one segment in the model's coordinates; ``tau`` the forcing interval (0-based
    ``i % tau == 0, i > 0``); ``observation_std`` the weight Lambda = std^2 I; ``alpha`` the forcing strength.
    See `ITFOperator` for models whose p x p matrix does not fit.
    """
    return ITFOperator(model, x, tau, observation_std, alpha).dense()  # type: ignore[arg-type]


def itf_trace(
    model: ALRNN | PALRNN, x: ArrayLike, tau: int, observation_std: float | ArrayLike, *, alpha: float = 1.0
) -> float:
    """Return the trace of `itf_fisher` without building the matrix."""
    return ITFOperator(model, x, tau, observation_std, alpha).trace()  # type: ignore[arg-type]
