"""Parameters by the likelihood of noisy observations, with error bars that hold where these are noisy.

Teacher forcing takes what was measured for the state. Where measurements are noisy it comes to other
parameters than the true ones (errors in variables), and no spread around them covers the difference. The
likelihood of a model that knows both noises has no such bias. A Gaussian filter predicts each observation
from those before it, with errors e_t of variances s_t; with theta the drift and eta the logarithms of the
deviations of the process in each unit and of the observation in each coordinate,

    l(theta, eta) = -1/2 sum_t log(2 pi s_t) + e_t^2 / s_t
    H             = sum_t de_t de_t^T / s_t + ds_t ds_t^T / (2 s_t^2)    (Fisher information, given the past)
    (theta, eta) <- (theta, eta) + H^{-1} dl                                           (Fisher scoring)
    (theta, eta)  ~ N(its end, H^{-1} J H^{-1})

with J the long-run variance of the scores, from sums over blocks as in `gibbs_posterior`: what the Gaussian
filter leaves out, and noise that is not as assumed, change J and not H. The deviations are learned with the
drift, and the bars on theta are those with eta unknown.

H is never negative. A direction with less information than ``least`` is not identified (a step along it of
length one costs less than half a unit of log likelihood): it is neither moved nor drawn, and counted. A small
deviation is hardly seen in its logarithm, though: one that is not identified grows as long as half a unit is
to be gained. None goes below a floor; one that is there stays until nothing else moves, and for good unless
the likelihood rises above it, by half a unit where it is hardly seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_instance, as_int, as_trials, one_of
from palrnn.engine.gaps import whole_rows
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import generator
from palrnn.geometry.kernels.gaussian_filter import innovation_derivatives, innovations
from palrnn.model import ALRNN, PALRNN, Noise, Surrogate

CALIBRATIONS = ("sandwich", "none")
# half of a central difference: its error is a millionth of a third derivative, that of rounding less
_STEP = 1e-4
# deviations below this part of the data's are as good as none
_FLOOR = 2e-3
# numbers that derivatives may take: 1.6 GB
_MOST = 200_000_000


@dataclass(frozen=True, eq=False)
class LikelihoodPosterior:
    """A Gaussian around ``model`` over what the data identify: theta_hat + factor e.

    ``factor (p, r)``, e standard normal, or of Student's t with ``freedom`` degrees where the variance is
    known from blocks. ``unidentified`` directions, of theta and the noises, are the same in all draws.
    ``palrnn`` is the model with the noise and the start law that belong to it, ``log_likelihood`` that of
    what was seen after each first row, ``rounds`` the number of steps that were taken and ``left`` the length
    of the last, in standard deviations: more than 0.1 means that it has not arrived.
    """

    palrnn: PALRNN
    factor: Floats = field(repr=False)
    unidentified: int
    log_likelihood: float
    rounds: int
    left: float
    freedom: int | None = None

    @property
    def model(self) -> Any:
        """The drift in the middle."""
        return self.palrnn.drift

    @property
    def std(self) -> Floats:
        """The standard deviation of each parameter, ``(p,)``, as far as it is identified."""
        wider = 1.0 if self.freedom is None else self.freedom / (self.freedom - 2)
        return np.asarray(np.sqrt(wider * (self.factor**2).sum(axis=1)))

    def sample_theta(self, count: int, *, seed: int = 0) -> Floats:
        """Return ``(count, p)`` drift parameters drawn from the posterior."""
        pin_blas()
        rng, count = generator(seed), as_int(count, "count", least=1)
        noise = rng.standard_normal((count, self.factor.shape[1]))
        if self.freedom is not None:
            noise *= np.sqrt(self.freedom / rng.chisquare(self.freedom, size=(count, 1)))
        return np.asarray(self.model.theta + noise @ self.factor.T)

    def sample(self, count: int, *, seed: int = 0) -> list[Any]:
        """Return ``count`` drifts drawn from the posterior."""
        return [self.model.with_theta(theta) for theta in self.sample_theta(count, seed=seed)]

    def __repr__(self) -> str:
        late = "" if self.left < 0.1 else f", still {self.left:.2g} deviations to go"
        return f"LikelihoodPosterior({self.palrnn!r}: {self.unidentified} directions not identified{late})"


def likelihood_posterior(
    model: Surrogate | PALRNN,
    x: ArrayLike | Sequence[ArrayLike],
    *,
    calibration: str = "sandwich",
    learn_noise: bool = True,
    block: int | None = None,
    least: float = 1.0,
    iterations: int = 30,
    progress: Progress | None = None,
) -> LikelihoodPosterior:
    """Climb the likelihood of ``x`` from ``model``, an AL-RNN or one with noise; return bars around the top.

    ``x``, ``(T, N)`` or trials, is in the model's coordinates, NaN where not observed. Unless
    ``learn_noise``, the deviations stay those of a given `PALRNN`. A first row is a measurement of its state:
    ``initial`` of the model found is the noise of observation in units that are observed and that of the
    process in others, and takes the place of a given one. ``calibration="sandwich"`` has the spread
    that the scores show, in blocks of ``block`` steps (None: the cube root of their number);
    ``"none"`` that of the model as it is. ``iterations`` bounds the steps of Fisher scoring.

    This is the method to use for parameters. It is meant for models whose units are observed, with some
    hundreds of parameters at most; of hidden units little is identified. Training by it may cost a chaotic
    model its attractor, as all learning by evidence does (docs/tuning.md): for invariants take `bootstrap`.
    """
    calibration = one_of(calibration, "calibration", CALIBRATIONS)
    drift = model.drift if isinstance(model, PALRNN) else model
    if not isinstance(drift, ALRNN) or drift.input_dim:
        raise ValueError("model must be an ALRNN without inputs, or a PALRNN of one")
    if isinstance(model, PALRNN) and not model.is_standard:
        raise ValueError("model must have diagonal noises and first units that are observed")
    if not learn_noise and not isinstance(model, PALRNN):
        raise ValueError("learn_noise must be True for a model without noise")
    trials = as_trials(x, "x", dim=drift.observed_dim, allow_nan=True)
    if any(np.isnan(trial[0]).any() for trial in trials):
        raise ValueError("x must start at a row without a gap")
    steps = sum(len(trial) - 1 for trial in trials)
    if 2 * steps * drift.observed_dim * drift.theta.size > _MOST:
        raise ValueError(
            f"model has too many parameters for this method, {drift.theta.size} with {steps} steps"
        )
    length = round(steps ** (1 / 3)) if block is None else as_int(block, "block", least=1)
    problem = _Problem(trials, drift, model.gate_std if isinstance(model, PALRNN) else 0.0, bool(learn_noise))
    least, most = as_float(least, "least", above=0.0), as_int(iterations, "iterations", least=0)
    pin_blas()
    with listening(progress, "likelihood") as report:
        point, rounds, left = problem.start(model), 0, 0.0
        held, settled = problem.at_floor(point), False
        here, damping = problem.at(point, held), 0.0
        while rounds < most:
            move, left = _step(here, drift.theta.size, least, damping, settled)
            report(rounds, most, {"log likelihood": here.value, "step": left})
            if left < 0.01:
                # on the way errors of the drift look like noise: deviations are let go at the end only
                freed = held & problem.rising(point, held)
                if settled and not freed.any():
                    break
                settled, held = True, held & ~freed
                here = problem.at(point, held) if freed.any() else here
                continue
            there = problem.moved(point, move)
            value, rounds = problem.value(there), rounds + 1
            if value < here.value - 1e-6 or not np.isfinite(value):
                damping = max(4.0 * damping, 0.1)
                if damping > 1e6:
                    break
                continue
            point, damping = there, damping / 10.0 if damping > 1e-3 else 0.0
            held = problem.at_floor(point)
            here = problem.at(point, held)
    values, vectors = np.linalg.eigh(here.information)
    kept = values > least
    inverse = vectors[:, kept] / values[kept]
    size, freedom = drift.theta.size, None
    factor = inverse * np.sqrt(values[kept])
    if calibration == "sandwich":
        scores = np.concatenate([_sums(part, length) for part in here.scores])
        # at the top scores sum to zero, in each direction: that costs one block, however many directions
        freedom = len(scores) - 1
        if freedom < 4:
            raise ValueError(f"block must fit into x at least five times, got {length} for {steps} steps")
        scores = scores * np.sqrt(len(scores) / freedom)
        factor = inverse @ (vectors[:, kept].T @ scores.T)
    # directions of a noise that is at its floor have no information, and are not worth a count
    count = int((~kept).sum() - held.sum())
    return LikelihoodPosterior(problem.model(point), factor[:size], count, here.value, rounds, left, freedom)


@dataclass(frozen=True, eq=False)
class _Local:
    """Log likelihood, gradient ``(n,)``, Fisher information ``(n, n)``, and scores ``(T-1, n)`` of trials."""

    value: float
    gradient: Floats
    information: Floats
    scores: list[Floats]


@dataclass(frozen=True, eq=False)
class _Problem:
    trials: list[Floats]
    drift: ALRNN
    gate_std: float
    learn_noise: bool

    @property
    def floor(self) -> float:
        """The smallest deviation of a noise."""
        return max(_FLOOR * float(np.nanstd(np.concatenate(self.trials))), 1e-12)

    @property
    def size(self) -> int:
        """p, the number of parameters of the drift, which come first in a point."""
        return int(self.drift.theta.size)

    def start(self, model: Any) -> Floats:
        """The point of the model; one without noise shares its errors out between both."""
        hidden = self.drift.latent_dim - self.drift.observed_dim
        if isinstance(model, PALRNN):
            stds = np.sqrt(np.concatenate([model.process_variances, model.observation_variances]))
        else:
            each = 0.6 * self._typical_errors()
            stds = np.concatenate([each, np.full(hidden, each.mean()), each])
        # given deviations that are not learned stay as they are, however small
        stds = np.maximum(stds, self.floor) if self.learn_noise else stds
        return np.concatenate([self.drift.theta, np.log(stds)])

    def _typical_errors(self) -> Floats:
        """Return the typical error of a prediction from a whole row, ``(N,)``.

        A coordinate that is never seen after a whole row has the deviation of its values instead.
        """
        count, total = np.zeros(self.drift.observed_dim), np.zeros(self.drift.observed_dim)
        for x in self.trials:
            whole = whole_rows(x[:-1])
            ahead = self.drift.step(self.drift.embed(x[:-1][whole]))[:, : x.shape[1]]
            errors = x[1:][whole] - ahead
            count += (~np.isnan(errors)).sum(axis=0)
            total += np.nansum(np.square(errors), axis=0)
        spread = np.nanstd(np.concatenate(self.trials), axis=0)
        return np.where(count > 0, np.sqrt(total / np.maximum(count, 1.0)), spread)

    def at_floor(self, point: Floats) -> Any:
        """Which of the deviations are at the floor; all where they stay as given."""
        return (point[self.size :] <= np.log(self.floor) + 1e-9) | (not self.learn_noise)

    def rising(self, point: Floats, held: Any) -> Any:
        """With which of the ``held`` deviations the likelihood rises, by half a unit where hardly seen."""
        if not self.learn_noise or not held.any():
            return np.zeros_like(held)
        here = self.at(point, np.zeros_like(held))
        slope, own = here.gradient[self.size :], np.diagonal(here.information)[self.size :]
        return (slope > 0.0) & ((own >= 1.0) | (slope**2 > own))

    def model(self, point: Floats) -> PALRNN:
        """The model at a point, with the start law of the filter: a first row is a measurement."""
        deviations, units = np.exp(point[self.size :]), self.drift.latent_dim
        process, observation = deviations[:units], deviations[units:]
        initial = np.concatenate([observation, process[len(observation) :]])
        noises = Noise.diagonal(process), Noise.diagonal(observation)
        drift = self.drift.with_theta(point[: self.size])
        return PALRNN(drift, *noises, self.gate_std, Noise.diagonal(initial))

    def moved(self, point: Floats, move: Floats) -> Floats:
        there, noise = point + move, np.s_[self.size :]
        # a factor of e at most at once, and never below the floor
        there[noise] = np.clip(there[noise], point[noise] - 1.0, point[noise] + 1.0)
        there[noise] = np.maximum(there[noise], np.log(self.floor))
        return np.asarray(there)

    def value(self, point: Floats) -> float:
        total, sizes = 0.0, (self.drift.latent_dim, self.drift.gated)
        for x in self.trials:
            error, variance = np.empty((len(x) - 1, x.shape[1])), np.empty((len(x) - 1, x.shape[1]))
            theta, deviations, start = point[: self.size].copy(), np.exp(point[self.size :]), self._start(x)
            innovations(theta, *sizes, deviations, self.gate_std, start, x, error, variance)
            total += _log_likelihood(x, error, variance)
        return total

    def at(self, point: Floats, held: Any) -> _Local:
        """The likelihood around a point, in which the ``held (M + N,)`` deviations have no derivative."""
        size = len(point)
        steps = np.full(size, _STEP)
        steps[self.size :] = np.where(held, 0.0, _STEP)
        value, information, scores = 0.0, np.zeros((size, size)), []
        for x in self.trials:
            shape = (len(x) - 1, x.shape[1])
            error, variance = np.empty(shape), np.empty(shape)
            derror, dvariance = np.empty((size, *shape)), np.empty((size, *shape))
            theta, logs, start = point[: self.size].copy(), point[self.size :].copy(), self._start(x)
            units, gated = self.drift.latent_dim, self.drift.gated
            innovation_derivatives(
                theta,
                units,
                gated,
                logs,
                self.gate_std,
                start,
                x,
                steps,
                error,
                variance,
                derror,
                dvariance,
            )
            value += _log_likelihood(x, error, variance)
            if not np.isfinite([value, np.abs(derror).max(), np.abs(dvariance).max()]).all():
                raise ValueError("model must be able to predict x: its likelihood is not finite")
            first = (derror / np.sqrt(variance)).reshape(size, -1)
            second = (dvariance / (np.sqrt(2.0) * variance)).reshape(size, -1)
            information += first @ first.T + second @ second.T
            slope = 0.5 * (error**2 / variance - 1.0) / variance
            scores.append(((-error / variance) * derror + slope * dvariance).sum(axis=2).T)
        gradient = np.sum([part.sum(axis=0) for part in scores], axis=0)
        return _Local(value, gradient, information, scores)

    def _start(self, x: Floats) -> Floats:
        """Return the mean of the first state: as measured where observed, else as embedded."""
        return np.ascontiguousarray(self.drift.embed(x[0]))


def _log_likelihood(x: Floats, error: Floats, variance: Floats) -> float:
    """Return log p of what was seen of ``x (T, N)`` given its first row; -inf if the filter lost its way."""
    if not (variance > 0.0).all() or not np.isfinite(error).all():
        return float("-inf")
    with np.errstate(over="ignore"):
        terms = np.log(2.0 * np.pi * variance) + error**2 / variance
        return -0.5 * float(np.where(np.isnan(x[1:]), 0.0, terms).sum())


def _step(here: _Local, size: int, least: float, damping: float, settled: bool) -> tuple[Floats, float]:
    """Return the step along what is identified, and its undamped length in standard deviations.

    Once that is ``settled``, deviations, which come after the ``size`` parameters of the drift, grow each by
    itself, by a factor of e at most, where they are not identified but half a unit is to be gained.
    """
    values, vectors = np.linalg.eigh(here.information)
    kept = values > least
    along = vectors[:, kept].T @ here.gradient
    move = vectors[:, kept] @ (along / (values[kept] * (1.0 + damping)))
    own, slope = np.diagonal(here.information)[size:], here.gradient[size:]
    lost = np.square(vectors[size:, kept]).sum(axis=1) < 0.5
    # twice what a step of its own gains, the score statistic: the same in any coordinate of the deviation
    grows = lost & (slope > 0.0) & (slope**2 > own) & settled
    move[size:][grows] += np.minimum(slope[grows] / own[grows], 1.0) / (1.0 + damping)
    total = (along**2 / values[kept]).sum() + (slope[grows] ** 2 / own[grows]).sum()
    return move, float(np.sqrt(total / max(1, kept.sum() + grows.sum())))


def _sums(scores: Floats, length: int) -> Floats:
    """Return the sums over blocks of ``scores (T, p)``; what is left at the end joins the last."""
    edges = np.arange(0, max(1, len(scores) // length) * length, length)
    return np.asarray(np.add.reduceat(scores, edges, axis=0))


def with_fitted_noise(drift: ALRNN, x: ArrayLike | Sequence[ArrayLike]) -> PALRNN:
    """Return ``drift`` as it is with the two deviations, one for all units, that make ``x`` most likely.

    ``x``, ``(T, N)`` or trials, starts at a row without a gap, which is a measurement of the first state:
    ``initial`` of the model says so.
    """
    trials = as_trials(x, "x", dim=as_instance(drift, "drift", ALRNN).observed_dim, allow_nan=True)
    if any(np.isnan(trial[0]).any() for trial in trials):
        raise ValueError("x must start at a row without a gap")
    problem, units = _Problem(trials, drift, 0.0, True), drift.latent_dim
    least = np.log(problem.floor)
    start = np.log(np.exp(problem.start(drift)[-drift.observed_dim :]).mean())

    def point(logs: Floats) -> Floats:
        both = np.maximum(logs, least)
        return np.concatenate([drift.theta, np.repeat(both, [units, drift.observed_dim])])

    def loss(logs: Floats) -> float:
        value = problem.value(point(logs))
        return -value if np.isfinite(value) else 1e300

    from scipy.optimize import minimize

    how: dict[str, Any] = {"method": "Nelder-Mead", "options": {"xatol": 0.02, "fatol": 0.1}}
    return problem.model(point(minimize(loss, np.array([start, start]), **how).x))
