"""The Rao-Blackwellised particle filter in plain NumPy (Alg. rbpf-louis).

It says what the filter is, runs every kind of model, and is what the compiled one (`fast_filter`) is tested
against: both draw the same numbers, so that they agree particle by particle. The model is

    u_t = G z_t + g + gate noise,   c_t = 1{u_t > 0}                        the gates             (eq. probit)
    z_{t+1} = J(c_t) z_t + b(c_t) + C s_t + N(0, Q)                         the states     (eq. ssmtransition)
    x_t = B z_t + d + N(0, R)                                               the data       (eq. ssmtransition)

for any `Surrogate` (its ``gate_map`` and ``affine``), any noise and any observation map. Given the gates it
is linear and Gaussian: gates are sampled, states are not. Each particle carries a Gaussian belief over z_t
given its gates so far and x_{1:t}. Arrays have one row per particle: ``(n, ...)``. ``drive (T, M)`` are the
rows C s_t of a model with inputs, None for one without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference.collectors import Steps
from palrnn.inference.config import FilterConfig
from palrnn.inference.kernels.noise import gate_normals, resampling_uniforms
from palrnn.inference.kernels.resampling import settle
from palrnn.inference.record import FilterDiedError, Record, words_of
from palrnn.inference.resampling import SCHEMES
from palrnn.model import PALRNN

Bools = NDArray[np.bool_]


class Beliefs(NamedTuple):
    """Gaussian beliefs N(m, P), one per particle: ``mean (n, M)``, ``cov (n, M, M)``."""

    mean: Floats
    cov: Floats


class Gates(NamedTuple):
    """The noisy gate inputs u = G z + g + N(0, ``variance`` I): ``G (P, M)``, ``g (P,)`` (eq. probit)."""

    G: Floats
    g: Floats
    variance: float

    @property
    def covariance(self) -> Floats:
        """The covariance of the gate noise, ``(P, P)``."""
        return self.variance * np.eye(len(self.g))


def filter_pass(
    model: PALRNN,
    x: Floats,
    drive: Floats | None,
    config: FilterConfig,
    key: int,
    schedule: NDArray[np.int8],
    record: Record,
) -> Iterator[Steps]:
    """Fill the ``record`` of one pass, and yield each transition when it is finished.

    ``schedule (T-1,)`` says where to resample, -1 where the effective sample size decides.
    """
    steps, n, gates = len(x) - 1, config.particles, gates_of(model)
    beliefs, log_weights = initial_beliefs(model, x[0], n), record.log_weights
    record.mean[0] = beliefs.mean[0]
    for t in range(steps):
        noise = gate_noise(key, t, n, model.drift.gated)
        push = None if drive is None else drive[t]
        codes, beliefs, log_likelihood = transition(
            model, gates, beliefs, noise, config.target, x[t + 1], push
        )
        log_weights[:], record.increments[t] = reweigh(log_weights, log_likelihood)
        if math.isnan(record.increments[t]):
            raise FilterDiedError.at(t, steps, n)
        weights = np.exp(log_weights)
        alive = weights > 0  # the mean of a dead particle may be infinite
        record.mean[t + 1] = weights[alive] @ beliefs.mean[alive]
        record.code_words[t] = words_of(codes)
        record.ess[t] = effective_sample_size(weights)
        due = record.ess[t] < config.ess_threshold * n if schedule[t] < 0 else schedule[t] > 0
        if due and t + 1 < steps:  # after the last step it would only add noise
            record.resampled[t] = True
            ancestors = record.ancestors[t + 1]
            SCHEMES[config.resampling](weights, resampling_noise(key, t, n), ancestors)
            settle(ancestors)
            beliefs = Beliefs(beliefs.mean[ancestors], beliefs.cov[ancestors])
            log_weights[:] = -math.log(n)
        now = slice(t, t + 1)
        yield Steps(t, weights[None], record.code_words[now], record.ancestors[now], codes.shape[1])


def transition(
    model: PALRNN,
    gates: Gates,
    beliefs: Beliefs,
    noise: Floats,
    target: str,
    x: Floats,
    push: Floats | None = None,
) -> tuple[Bools, Beliefs, Floats]:
    """Take all particles to the next row ``x (N,)``: return codes, beliefs given it, and log p(x | past).

    ``push (M,)`` is C s_t.
    """
    with np.errstate(all="ignore"):  # what overflows is a dead particle
        codes, beliefs = draw_gates(beliefs, gates, noise, target)
        J, b = pushed_affine(model, codes, push)
        beliefs = predict(beliefs, J, b, model.process_covariance)
        return codes, *observe(beliefs, model, x)


def pushed_affine(model: PALRNN, codes: NDArray[Any], push: Floats | None) -> tuple[Floats, Floats]:
    """Return J(c) and b(c) + C s_t of a transition, ``push (M,)`` being C s_t; None without inputs."""
    J, b = model.drift.affine(codes)
    return J, b if push is None else b + push


def gates_of(model: PALRNN) -> Gates:
    """Return the gate inputs of ``model``."""
    G, g = model.drift.gate_map()
    return Gates(G, g, model.gate_std**2)


def initial_beliefs(model: PALRNN, x1: Floats, n: int) -> Beliefs:
    """z_1 ~ N(embed(x_1), initial covariance), for n particles (eq. alrnn_init_embed)."""
    dim = model.drift.latent_dim
    mean, cov = model.drift.embed(x1), model.initial_covariance
    return Beliefs(np.broadcast_to(mean, (n, dim)).copy(), np.broadcast_to(cov, (n, dim, dim)).copy())


def draw_gates(beliefs: Beliefs, gates: Gates, noise: Floats, target: str) -> tuple[Bools, Beliefs]:
    """Draw codes ``(n, P)`` with standard normal ``noise (n, P)``; return them, and the beliefs after.

    ``"paper"``: each gate by the integrated probit, P(c_j = 1) = Phi(mu_j / sqrt(nu_j + gate_std^2)), with
    mu = G m + g and nu the diagonal of G P G^T. The belief stays as it was.

    ``"exact"``: u jointly from N(mu, G P G^T + gate_std^2 I); the belief is conditioned on u, because a gate
    that was drawn from z says something about z.
    """
    G, g, variance = gates
    mean = beliefs.mean @ G.T + g
    if target == "paper":
        nu = np.einsum("jk,nkl,jl->nj", G, beliefs.cov, G, optimize=True)
        return mean + np.sqrt(nu + variance) * noise > 0, beliefs
    after, inputs, _ = condition(beliefs, G, g, gates.covariance, noise=noise)
    return inputs > 0, after


def predict(beliefs: Beliefs, J: Floats, b: Floats, Q: Floats) -> Beliefs:
    """m <- J m + b,  P <- J P J^T + Q: the Kalman prediction (eq. pwa); ``J (n, M, M)``, ``b (n, M)``."""
    cov = J @ beliefs.cov @ transposed(J) + Q
    return Beliefs(times(J, beliefs.mean) + b, 0.5 * (cov + transposed(cov)))


def observe(beliefs: Beliefs, model: PALRNN, x: Floats) -> tuple[Beliefs, Floats]:
    """Condition on what is observed of ``x (N,)``; return the beliefs, and log p(x | past) ``(n,)``."""
    seen = np.flatnonzero(~np.isnan(x))
    B, d, R = model.observation_map.B, model.observation_map.d, model.observation_covariance
    after, _, log_likelihood = condition(beliefs, B[seen], d[seen], R[np.ix_(seen, seen)], value=x[seen])
    return after, log_likelihood


def condition(
    beliefs: Beliefs,
    H: Floats,
    offset: Floats,
    R: Floats,
    *,
    value: Floats | None = None,
    noise: Floats | None = None,
) -> tuple[Beliefs, Floats, Floats]:
    """Condition each N(m, P) on y = H z + offset + N(0, R): the Kalman update. Return beliefs, y, log p(y).

    With S = H P H^T + R = L L^T, the gain K = P H^T S^(-1) and e = L^(-1) (y - H m - offset),

        m <- m + K (y - H m - offset),    P <- (I - K H) P (I - K H)^T + K R K^T,
        log p(y) = -1/2 sum_k (log(2 pi L_kk^2) + e_k^2).

    The covariance is in Joseph's form, in which nothing cancels: where there is no noise nothing is left.
    y is ``value (K,)``; or it is drawn, y = H m + offset + L e with e = ``noise (n, K)``. A direction of y
    that is known already (L_kk = 0) teaches nothing, and has no density.
    """
    mean, HP = beliefs.mean @ H.T + offset, H @ beliefs.cov
    L, inverse = roots(HP @ H.T + R)
    if noise is None:
        y = np.broadcast_to(np.asarray(value), mean.shape)
        e = times(inverse, y - mean)
    else:
        y, e = mean + times(L, noise), noise
    whitened = transposed(inverse @ HP)
    K = whitened @ inverse
    left = np.eye(H.shape[1]) - K @ H
    cov = left @ beliefs.cov @ transposed(left) + K @ R @ transposed(K)
    scale = np.diagonal(L, axis1=-2, axis2=-1)
    log_density = np.where(scale > 0, -0.5 * math.log(2.0 * math.pi) - np.log(scale) - 0.5 * e * e, np.nan)
    return Beliefs(beliefs.mean + times(whitened, e), cov), y, log_density.sum(axis=-1)


def roots(S: Floats) -> tuple[Floats, Floats]:
    """Return lower triangular L with L L^T = S (Cholesky) and its inverse, ``S (n, K, K)``.

    Where a pivot is not positive, the direction has no variance left: its column of L and its row of the
    inverse are zero.
    """
    L, inverse = np.zeros_like(S), np.zeros_like(S)
    for k in range(S.shape[-1]):
        row = L[:, k, :k]
        scale = np.sqrt(np.maximum(S[:, k, k] - (row * row).sum(axis=-1), 0.0))
        over = np.where(scale > 0, 1.0 / scale, 0.0)
        L[:, k, k], inverse[:, k, k] = scale, over
        L[:, k + 1 :, k] = over[:, None] * (S[:, k + 1 :, k] - times(L[:, k + 1 :, :k], row))
        inverse[:, k, :k] = -over[:, None] * times(transposed(inverse[:, :k, :k]), row)
    return L, inverse


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Return the products of ``matrices (n, I, K)`` with ``vectors (n, K)``."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def transposed(matrices: Floats) -> Floats:
    """Return ``matrices (n, I, K)``, each transposed."""
    return matrices.swapaxes(-1, -2)


@np.errstate(all="ignore")
def reweigh(log_weights: Floats, log_likelihood: Floats) -> tuple[Floats, float]:
    """w_i <- w_i p(x | i) / sum_j w_j p(x | j); return log w and the log of the sum, NaN if all are dead.

    The logs of these sums add up to the log of an unbiased estimate of the evidence. A particle whose
    likelihood is not a number is dead.
    """
    total = log_weights + log_likelihood
    total = np.where(np.isnan(total), -np.inf, total)
    top = total.max()
    if not np.isfinite(top):
        return total, math.nan
    increment = float(top + np.log(np.exp(total - top).sum()))
    return total - increment, increment


def effective_sample_size(weights: Floats) -> float:
    """1 / sum_i w_i^2 (eq. rbpf_ess)."""
    return float(1.0 / np.sum(weights * weights))


def code_entropy(steps: Steps) -> Floats:
    """H = -sum_c p(c) log2 p(c) in bits, p(c) the weight of the particles with code c, of each transition."""
    return np.array([_entropy_of_codes(*both) for both in zip(steps.codes, steps.weights, strict=True)])


def _entropy_of_codes(codes: Bools, weights: Floats) -> float:
    _, number = np.unique(codes, axis=0, return_inverse=True)
    masses = np.bincount(number.ravel(), weights).astype(np.float64)
    return float(entropy_terms(masses).sum())


def gate_probability(steps: Steps) -> Floats:
    """P(c_j = 1), the weight of the particles whose gate j is open, of each transition, ``(k, P)``."""
    return np.einsum("tn,tnj->tj", steps.weights, steps.codes)


def bit_entropy(steps: Steps) -> Floats:
    """The summed entropies of single gates in bits, of each transition: the paper's proxy for many gates."""
    probability = gate_probability(steps)
    return np.asarray((entropy_terms(probability) + entropy_terms(1.0 - probability)).sum(axis=-1))


def entropy_terms(probability: Floats) -> Floats:
    """-p log2 p, which is 0 at p = 0."""
    positive = np.where(probability > 0, probability, 1.0)
    return -positive * np.log2(positive)


#: What is collected of every pass.
DIAGNOSTICS = {"code_entropy": code_entropy, "bit_entropy": bit_entropy, "gate_probability": gate_probability}


def gate_noise(key: int, step: int, n: int, gated: int) -> Floats:
    """The standard normal numbers ``(n, P)`` of all particles at one step."""
    noise = np.empty((gated, n))
    gate_normals(np.uint64(key), step, noise)
    return noise.T


def resampling_noise(key: int, step: int, n: int) -> Floats:
    """The uniform numbers ``(n,)`` that resampling uses at one step."""
    uniforms = np.empty(n)
    resampling_uniforms(np.uint64(key), step, uniforms)
    return uniforms


class Cloud:
    """The particles at one time, for `Stepper`: see `palrnn.inference.fast_filter.Cloud`."""

    def __init__(self, model: PALRNN, x1: Floats, config: FilterConfig, key: int) -> None:
        self.model, self.config, self.key = model, config, key
        self._gates = gates_of(model)
        self._beliefs = initial_beliefs(model, x1, config.particles)
        self.log_weights = np.full(config.particles, -math.log(config.particles))
        self.codes: Bools | None = None

    def advance(self, t: int, x: Floats, push: Floats | None = None) -> float:
        """Take transition ``t``, pushed by C s_t, to the row ``x (N,)``; return the increment, NaN if all
        died."""
        n, drift = self.config.particles, self.model.drift
        if t > 0 and effective_sample_size(self.weights) < self.config.ess_threshold * n:
            ancestors = np.arange(n, dtype=np.int32)
            SCHEMES[self.config.resampling](self.weights, resampling_noise(self.key, t - 1, n), ancestors)
            settle(ancestors)
            self._beliefs = self.beliefs(ancestors)
            self.log_weights[:] = -math.log(n)
        noise = gate_noise(self.key, t, n, drift.gated)
        self.codes, self._beliefs, log_likelihood = transition(
            self.model, self._gates, self._beliefs, noise, self.config.target, x, push
        )
        self.log_weights, increment = reweigh(self.log_weights, log_likelihood)
        return increment

    @property
    def weights(self) -> Floats:
        """The normalised weights, ``(n,)``."""
        return np.exp(self.log_weights)

    @property
    def ess(self) -> float:
        """The effective number of particles."""
        return effective_sample_size(self.weights)

    @property
    def mean(self) -> Floats:
        """The filtered mean of the state, ``(M,)``."""
        if self.codes is None:  # all are alike
            return self._beliefs.mean[0].copy()
        alive = self.weights > 0
        return np.asarray(self.weights[alive] @ self._beliefs.mean[alive])

    def beliefs(self, particles: NDArray[Any]) -> Beliefs:
        """The beliefs over the state of some ``particles (k,)``."""
        return Beliefs(self._beliefs.mean[particles], self._beliefs.cov[particles])
