"""The Gibbs posterior of teacher forcing (eq. gibbs), with the spread that the data shows.

The loss of teacher forcing is no likelihood: its errors are correlated in time and have the size that they
have. With H = (T - 1) I_ITF the curvature of the loss and J the long-run variance of its gradient, both for
all the data, an estimate by the loss varies by

    H^{-1} J H^{-1},      J = B / (B - 1) sum_b (s_b - mean)(s_b - mean)^T

over repeated data (the sandwich), where s_b is the sum of the gradients in block b: gradients of different
blocks hardly depend on each other if blocks are longer than their memory. Where all directions are known
equally well by the two, J = w^{-1} H, a posterior proportional to exp(-w loss) with that one temperature has
the same spread; else w = tr(H J^{-1} H) / tr(H) gives it the same information in all directions together
(Lyddon, Holmes and Walker, 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, one_of
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.geometry.itf import ITFOperator
from palrnn.geometry.posterior import LaplacePosterior, laplace
from palrnn.model import PALRNN, Forcing, Noise, Surrogate, drift_of

CALIBRATIONS = ("sandwich", "temperature", "none")
# in the parameters of a model in standardised coordinates
_PRIOR, _HIDDEN_PRIOR = 0.1, 0.01


@dataclass(frozen=True, eq=False)
class SandwichPosterior(LaplacePosterior):
    """A Gaussian around ``model`` with covariance A (J + prior_std^{-2}) A, A = (H + prior_std^{-2})^{-1}.

    ``values`` and ``vectors`` are eigenpairs of H. ``scores (B, p)`` are those of the blocks, centred and
    scaled such that J = scores^T scores, and within the span of ``vectors``: outside of it, and where the
    data is silent, the prior rules, as in `laplace`. J is known from B blocks only, so that the data's part
    of a draw has the tails of Student's t with B - 1 degrees of freedom.
    """

    scores: Floats = field(repr=False)

    @property
    def std(self) -> Floats:
        """The standard deviation of each parameter, ``(p,)``."""
        pin_blas()
        free = len(self.scores) - 1
        spread = np.square(self._shrunk(self.scores)).sum(axis=0) * (free / (free - 2))
        # the diagonal of A^2 / prior_std^2, with A = prior_std^2 (Id - V learned V^T)
        rest = 1.0 - (self.vectors**2 * (self._learned * (2.0 - self._learned))).sum(axis=1)
        return np.sqrt(spread + self.prior_std**2 * np.maximum(rest, 0.0))

    def sample_theta(self, count: int, *, seed: int = 0) -> Floats:
        """Return ``(count, p)`` drift parameters drawn from the posterior."""
        pin_blas()
        rng, count = generator(seed), as_int(count, "count", least=1)
        free = len(self.scores) - 1
        steps = rng.standard_normal((count, len(self.scores))) @ self.scores
        steps *= np.sqrt(free / rng.chisquare(free, size=(count, 1)))
        steps += rng.standard_normal((count, len(self.vectors))) / self.prior_std
        return np.asarray(self.model.theta + self._shrunk(steps))

    def _shrunk(self, rows: Floats) -> Floats:
        """Return A times each of ``rows (n, p)``."""
        inside = (rows @ self.vectors * self._learned) @ self.vectors.T
        return np.asarray(self.prior_std**2 * (rows - inside))

    def __repr__(self) -> str:
        return super().__repr__().replace("Laplace", "Sandwich", 1)


def gibbs_posterior(
    model: Surrogate | PALRNN,
    x: ArrayLike,
    *,
    forcing: Forcing | int,
    inputs: ArrayLike | None = None,
    prior_std: float | None = None,
    calibration: str = "sandwich",
    observation: Noise | float | ArrayLike | None = None,
    block: int | None = None,
    leading: int | None = None,
) -> LaplacePosterior:
    """Return the Gibbs posterior of the drift of ``model``, trained on ``x (T, N)`` with ``forcing``.

    ``calibration="sandwich"`` has the spread of the estimate over repeated data, whatever the errors of the
    model are; ``"temperature"`` is the Gibbs posterior at the one temperature that fits best; ``"none"``
    takes the loss for a likelihood. ``observation`` weighs the coordinates (None: the deviation of the
    model's errors in each); ``block`` is the number of steps of a block (None: see `block_length`);
    ``leading`` keeps that many eigenpairs of the curvature, for models whose ``p x p`` matrix does not fit,
    and leaves the rest to the prior. ``prior_std`` is the deviation of the prior around the model, which
    holds what the data are silent about (None: 0.1, with hidden units 0.01, since wider ones let most draws
    diverge). A driven model needs its ``inputs (T, K)``.

    Bars that come of it are about the parameters to which training by this loss converges. Where the
    observations are noisy these are not the true ones, and no spread covers the difference: see
    `likelihood_posterior`.
    """
    calibration = one_of(calibration, "calibration", CALIBRATIONS)
    drift = drift_of(model)
    if prior_std is None:
        prior_std = _HIDDEN_PRIOR if drift.latent_dim > drift.observed_dim else _PRIOR
    most = drift.theta.size - 1
    kept = None if leading is None else as_int(leading, "leading", least=1, most=most)
    operator = ITFOperator(model, x, forcing, 1.0 if observation is None else observation, inputs=inputs)
    if observation is None:
        operator = ITFOperator(model, x, forcing, _typical(operator.errors), inputs=inputs)
    steps = len(operator.x) - 1
    information: Any = operator.dense() if kept is None else operator.leading(kept)
    whole = laplace(model, _times(information, steps), prior_std=prior_std)
    if calibration == "none":
        return whole
    length = block_length(steps, operator.forcing) if block is None else as_int(block, "block", least=1)
    scores = operator.block_scores(length)
    if len(scores) < 4:
        raise ValueError(f"block must fit into x at least four times, got {length} for {steps} steps")
    scores = (scores - scores.mean(axis=0)) * np.sqrt(len(scores) / (len(scores) - 1))
    if calibration == "temperature":
        weight = temperature(whole, scores)
        return replace(whole, values=weight * whole.values)
    if kept is not None:
        # outside of the span A is prior_std^2, and would carry over what the curvature there takes back
        scores = (scores @ whole.vectors) @ whole.vectors.T
    return SandwichPosterior(whole.model, whole.prior_std, whole.values, whole.vectors, whole.clipped, scores)


def block_length(steps: int, forcing: Forcing) -> int:
    """Return the default number of steps of a block: no less than twice the memory of the forced rollout.

    Forcing with part of the strength leaves (1 - strength)^k of an error after k intervals, so that it is
    forgotten after interval / strength steps, 1 / strength intervals. Of weak forcing, or none, that is more
    than the data have: an eighth of these then has to do, and blocks depend on each other as much as the
    model itself remembers. Twice the cube root of the number of steps is the least.
    """
    eighth = steps // 8
    memory = 2.0 * forcing.interval / forcing.strength if forcing.strength > 0.0 else float(eighth)
    return max(1, round(2 * steps ** (1 / 3)), 2 * forcing.interval, min(math.ceil(memory), eighth))


def temperature(posterior: LaplacePosterior, scores: Floats) -> float:
    """Return w = tr(H J^{-1} H) / tr(H) over the directions that the data decides.

    H is the information of ``posterior``, J = scores^T scores of ``scores (B, p)``, centred.
    """
    known = posterior.values * posterior.prior_std**2 > 1.0
    values, within = posterior.values[known], scores @ posterior.vectors[:, known]
    if not len(values) or len(scores) < 2 * len(values):
        raise ValueError(
            f"block must leave twice as many blocks as the data decides directions, {len(values)}, or the "
            f"temperature is not known; got {len(scores)} blocks: take shorter ones, or the sandwich"
        )
    variance = within.T @ within
    # the inverse of a variance from few blocks is too large, on average by this much (that of a Wishart)
    excess = (len(scores) - 1) / (len(scores) - len(values) - 2)
    return float((np.linalg.inv(variance).diagonal() * values**2).sum() / values.sum() / excess)


def _times(information: Any, factor: float) -> Any:
    if isinstance(information, tuple):
        return factor * information[0], information[1]
    return factor * information


def _typical(errors: Floats) -> Floats:
    std = np.sqrt(np.nanmean(np.square(errors), axis=0))
    if not (std > 0.0).all():
        raise ValueError("observation must be given: the model has no error in one of the coordinates of x")
    return np.asarray(std)
