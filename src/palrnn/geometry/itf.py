"""The curvature that teacher forcing sees: the ITF Fisher, as a matrix, a trace, or an operator.

    I_ITF = 1/(T-1) sum_t (B S_{t+1})^T Lambda^{-1} (B S_{t+1})   (eq. tfgn)

with S_t = dz_t / dtheta along the forced rollout. It is the generalised Gauss-Newton matrix of the
teacher-forcing loss read as a Gaussian pseudo-likelihood, per step, conditioned on the one code path of the
forced rollout. What was not seen (NaN) adds nothing. Its rank is at most ``(T - 1) N``. The dense matrix
costs O(T M^4); a product with a vector costs only O(T M^2), so leading eigenpairs are within reach when p x p
is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_series, frozen
from palrnn.engine.gaps import refuse_gap_at_start
from palrnn.engine.kernel import pin_blas
from palrnn.geometry.operators import SymmetricOperator
from palrnn.geometry.sensitivity import Sensitivity, forced_states, forcing_strengths, sensitivity
from palrnn.model import PALRNN, Forcing, Noise, Surrogate, as_forcing, as_noise, drift_of
from palrnn.model.engine import step
from palrnn.model.inputs import checked_inputs, offsets

# rows of sensitivities held at once, in numbers: 32 MB whatever the length of the series
_CHUNK = 4_000_000


class ForcedDivergenceError(ValueError):
    """A forced rollout that left every bound, and so has no curvature."""


@dataclass(frozen=True, eq=False, init=False)
class ITFOperator(SymmetricOperator):
    """The ITF Fisher of ``model`` along the forced rollout on ``x (T, N)``, without its p x p matrix.

    ``operator @ v`` multiplies by a vector ``(p,)`` or a matrix ``(p, k)``; `trace`, `leading` and `dense`
    give more. ``model`` is of any family (of a PAL-RNN, the drift). ``forcing`` is a `Forcing`, of which the
    final strength counts, or an interval tau. ``observation`` is the weight Lambda: a `Noise`, one deviation,
    or one per observed coordinate. NaN in ``x`` after its first row means not observed: it is not forced, and
    no prediction of it counts; the sum over what was seen is still divided by ``T - 1``, as the information
    of the whole segment is by its length. A driven model needs its ``inputs (T, K)``; the entries of C are
    its last parameters.
    """

    model: Any
    x: Floats
    forcing: Forcing
    observation: Noise
    inputs: Floats | None
    _states: Floats = field(repr=False)
    _sensitivity: Sensitivity = field(repr=False)
    _whiten: Floats | None = field(repr=False)

    def __init__(
        self,
        model: Surrogate | PALRNN,
        x: ArrayLike,
        forcing: Forcing | int,
        observation: Noise | float | ArrayLike,
        *,
        inputs: ArrayLike | None = None,
    ) -> None:
        """Run the forced rollout; one that diverges has no Fisher information."""
        drift, forcing = drift_of(model), as_forcing(forcing).final
        series = frozen(as_series(x, dim=drift.observed_dim, allow_nan=True))
        refuse_gap_at_start(series, "x")
        seen, steps = drift.observed_dim, len(series) - 1
        noise = as_noise(observation, "observation", seen)
        strengths = forcing_strengths(series, forcing)
        given = checked_inputs(drift, inputs, len(series))
        states, diverged = forced_states(drift, series, strengths, offsets(drift, given))
        if diverged >= 0:
            raise ForcedDivergenceError(
                f"the forced rollout diverged at step {diverged}: the ITF Fisher is not defined"
            )
        # correlated noise: rows are scaled by time only, and made independent one step at a time
        whiten = None if noise.is_diagonal else _whitening(noise.covariance(seen), series[1:])
        std = np.broadcast_to(noise.std, seen) if noise.is_diagonal else np.ones(seen)
        scale = np.where(np.isnan(series[1:]), 0.0, np.full(seen, 1.0) / (std * np.sqrt(steps)))
        values = {
            "model": drift,
            "x": series,
            "forcing": forcing,
            "observation": noise,
            "inputs": None if given is None else frozen(given),
            "_states": states,
            "_sensitivity": sensitivity(drift, states, strengths, scale, given),
            "_whiten": whiten,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def parameters(self) -> int:
        """p, the number of drift parameters."""
        return int(self.model.theta.size)

    @property
    def shape(self) -> tuple[int, int]:
        """``(p, p)``."""
        return self.parameters, self.parameters

    @property
    def max_rank(self) -> int:
        """What the rank cannot exceed: the number of predictions seen, at most ``(T - 1) N``, and p."""
        return min(int(np.count_nonzero(~np.isnan(self.x[1:]))), self.shape[0])

    def product(self, v: Floats) -> Floats:
        """Return the product with ``v (p,)``."""
        return self._sensitivity.cotangent(self._weighted(self._sensitivity.tangent(v)))

    def _weighted(self, forward: Floats) -> Floats:
        if self._whiten is None:
            return forward
        return np.asarray(np.einsum("tij,tik,tk->tj", self._whiten, self._whiten, forward))

    @cached_property
    def errors(self) -> Floats:
        """What was seen less what was predicted, ``(T-1, N)``; NaN where nothing was seen."""
        ahead, pushes = step(self.model, self._states), offsets(self.model, self.inputs)
        ahead = ahead if pushes is None else ahead + pushes[:-1]
        return self.x[1:] - ahead[:, : self.x.shape[1]]

    def block_scores(self, block: int) -> Floats:
        """Return the scores of blocks of ``block`` steps, ``(B, p)``: the last may be shorter.

        A score is the gradient in theta of the log pseudo-likelihood, minus half the sum of squared errors
        in units of ``observation``, of the predictions in the block.
        """
        pin_blas()
        block, steps = as_int(block, "block", least=1), len(self._states)
        std = 1.0 if self._whiten is not None else np.broadcast_to(self.observation.std, self.x.shape[1])
        pull = np.sqrt(steps) * self._weighted(np.nan_to_num(self.errors) / std)
        scores = np.empty((-(-steps // block), self.shape[0]))
        for b, score in enumerate(scores):
            inside = np.zeros_like(pull)
            part = slice(b * block, (b + 1) * block)
            inside[part] = pull[part]
            score[:] = self._sensitivity.cotangent(inside)
        return scores

    def trace(self) -> float:
        """Return the exact trace; memory O(M p), no p x p matrix."""
        pin_blas()
        if self._whiten is None:
            return self._sensitivity.trace()
        return float(sum(np.square(rows).sum() for rows in self._rows()))

    def factor(self) -> Floats:
        """Return G ``(T-1, N, p)`` with I_ITF = sum_t G_t^T G_t: what each step's prediction adds."""
        pin_blas()
        steps, seen = len(self._states), self.model.observed_dim
        return np.concatenate(list(self._rows())).reshape(steps, seen, -1)

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
            self._sensitivity.rows(begin, S, rows)
            if self._whiten is not None:
                rows = self._whiten[begin : begin + len(rows)] @ rows
            yield rows.reshape(-1, size)

    def __repr__(self) -> str:
        return f"ITFOperator({self.model!r}, steps={len(self.x)}, {self.forcing!r}, p={self.shape[0]})"


def _whitening(covariance: Floats, x: Floats) -> Floats:
    """Return the inverse Cholesky factors of the noise of what was seen in each row of ``x (T, N)``.

    ``(T, N, N)``, zero in the rows and columns of what was not seen.
    """
    patterns, which = np.unique(~np.isnan(x), axis=0, return_inverse=True)
    roots = np.zeros((len(patterns), *covariance.shape))
    for root, pattern in zip(roots, patterns, strict=True):
        seen = np.ix_(pattern, pattern)
        root[seen] = np.linalg.inv(np.linalg.cholesky(covariance[seen]))
    return np.asarray(roots[which.reshape(-1)])


def itf_fisher(
    model: Surrogate | PALRNN,
    x: ArrayLike,
    forcing: Forcing | int,
    observation: Noise | float | ArrayLike,
    *,
    inputs: ArrayLike | None = None,
) -> Floats:
    """Return the ITF Fisher ``(p, p)`` of the drift parameters theta, per step (eq. tfgn).

    ``x (T, N)`` is one segment in the model's coordinates; ``forcing`` a `Forcing`, or an interval tau for
    identity forcing (0-based ``i % tau == 0, i > 0``); ``observation`` the weight Lambda, as one deviation,
    one per coordinate, or a `Noise`. A driven model needs its ``inputs (T, K)``. See `ITFOperator` for gaps
    (NaN), and for models whose p x p matrix does not fit.
    """
    return ITFOperator(model, x, forcing, observation, inputs=inputs).dense()


def itf_trace(
    model: Surrogate | PALRNN,
    x: ArrayLike,
    forcing: Forcing | int,
    observation: Noise | float | ArrayLike,
    *,
    inputs: ArrayLike | None = None,
) -> float:
    """Return the trace of `itf_fisher` without building the matrix."""
    return ITFOperator(model, x, forcing, observation, inputs=inputs).trace()
