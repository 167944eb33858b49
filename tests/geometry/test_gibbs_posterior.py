"""The spread of an estimate by teacher forcing, held against repeated data from linear systems."""

import numpy as np
import pytest
from jax import config

config.update("jax_enable_x64", True)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from palrnn.geometry import ITFOperator, gibbs_posterior, laplace  # noqa: E402
from palrnn.geometry.gibbs import block_length  # noqa: E402
from palrnn.model import ALRNN, Forcing  # noqa: E402

TRUTH = np.array([[0.8, 0.25], [-0.3, 0.6]])


def many_series(count, steps, uneven=0.0, seed=0):
    """Linear systems; with ``uneven`` noise is larger where the state is, which no likelihood here knows."""
    rng = np.random.default_rng(seed)
    x = np.zeros((count, steps + 100, 2))
    for t in range(1, x.shape[1]):
        before = x[:, t - 1]
        size = np.sqrt(1.0 - uneven + uneven * (before**2).sum(axis=1, keepdims=True))
        x[:, t] = before @ TRUTH.T + 0.3 * size * rng.standard_normal((count, 2))
    return x[:, 100:]


def series(seed, steps):
    return many_series(1, steps, seed=seed)[0]


def fitted(x):
    """The linear map with the least squared error one step ahead, as an AL-RNN without gates."""
    regressors = np.column_stack([x[:-1], np.ones(len(x) - 1)])
    found = np.linalg.lstsq(regressors, x[1:], rcond=None)[0].T
    return ALRNN(np.zeros(2), found[:, :2], found[:, 2], np.eye(2), 0)


def linear_part(theta):
    """A + W, all of which the data knows, of parameters ``(n, 8)``."""
    return theta[:, 2:6].reshape(-1, 2, 2) + theta[:, :2, None] * np.eye(2)


def covered(factor=1.0, uneven=0.0, **settings):
    """The share of 90 and 50 % intervals with the truth inside, over 160 series and their entries."""
    inside = []
    for x in many_series(160, 400, uneven):
        model = fitted(x)
        draws = gibbs_posterior(model, x, forcing=1, prior_std=10.0, **settings).sample_theta(400)
        off = linear_part(draws) - linear_part(model.theta[None])
        low, high = np.quantile(off, [[0.05, 0.25], [0.95, 0.75]], axis=0)
        error = TRUTH - linear_part(model.theta[None])
        inside.append(((factor * low < error) & (error < factor * high)).mean(axis=(1, 2)))
    return np.mean(inside, axis=0)


# the four intervals of one series depend on each other; taken as two, 320 have a binomial error of 0.017 for
# 90 % and of 0.028 for 50 %: two and a half of them
def holds(shares):
    return abs(shares[0] - 0.9) < 0.042 and abs(shares[1] - 0.5) < 0.07


@pytest.mark.parametrize("calibration", ["sandwich", "temperature", "none"])
def test_intervals_cover_what_they_say_where_the_model_is_right(calibration):
    assert holds(covered(calibration=calibration))


def test_the_check_fails_for_intervals_that_are_too_short_or_too_long():
    assert not holds(covered(0.7))
    assert not holds(covered(1.5))


def test_only_the_sandwich_covers_where_noise_depends_on_the_state():
    assert holds(covered(uneven=0.8))
    for other in ("temperature", "none"):
        assert covered(uneven=0.8, calibration=other)[0] < 0.85


def test_scores_of_blocks_are_the_gradients_of_their_errors():
    rng = np.random.default_rng(3)
    model = ALRNN(rng.uniform(0.2, 0.6, 4), 0.3 * rng.standard_normal((4, 4)), rng.standard_normal(4),
                  rng.standard_normal((4, 2)), 2)  # fmt: skip
    x = rng.standard_normal((13, 2))
    x[5, 1] = x[7] = np.nan
    forcing, std = Forcing.generalised(0.4, interval=3), np.array([0.3, 0.7])
    seen, strengths = ~np.isnan(x), forcing.strengths(12)

    def log_likelihoods(theta):
        A, W, h = theta[:4], theta[4:20].reshape(4, 4), theta[20:24]
        z, blocks = jnp.asarray(model.embed(x[0])), [0.0, 0.0, 0.0]
        for t in range(12):
            forced = (1 - strengths[t]) * z[:2] + strengths[t] * np.nan_to_num(x[t])
            z = z.at[:2].set(jnp.where(seen[t], forced, z[:2]))
            active = jnp.concatenate([z[:2], jnp.maximum(z[2:], 0.0)])
            z = A * z + W @ active + h
            error = jnp.where(seen[t + 1], (np.nan_to_num(x[t + 1]) - z[:2]) / std, 0.0)
            blocks[t // 5] += -0.5 * (error**2).sum()
        return jnp.stack(blocks)

    found = ITFOperator(model, x, forcing, std).block_scores(5)
    expected = jax.jit(jax.jacrev(log_likelihoods))(jnp.asarray(model.theta))
    # the same sums in another order
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_draws_have_the_covariance_of_the_formula():
    x = series(1, 60)
    model = fitted(x)
    posterior = gibbs_posterior(model, x, forcing=1, prior_std=0.5, block=6, observation=0.3)
    operator = ITFOperator(model, x, 1, 0.3)
    scores = operator.block_scores(6)
    J = np.cov(scores.T, ddof=1) * len(scores)
    A = np.linalg.inv(59 * operator.dense() + 4.0 * np.eye(len(J)))
    # ten blocks: Student's t with nine degrees of freedom
    expected = A @ (J * 9 / 7 + 4.0 * np.eye(len(J))) @ A
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(expected)), rtol=1e-9)
    draws = posterior.sample_theta(100_000) - model.theta
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # entries of a sample covariance of n draws are off by sqrt(2 / n) of the variances, of this t, whose
    # kurtosis is 4.2, by no more than twice that; five of those
    assert np.abs((np.cov(draws.T) - expected) / scale).max() < 5 * 2 * np.sqrt(2 / 100_000)
    np.testing.assert_array_equal(posterior.sample_theta(3), posterior.sample_theta(3))


def test_the_temperature_of_a_loss_that_is_twice_too_sharp_is_a_quarter():
    x = series(2, 4000)
    model = fitted(x)
    right = gibbs_posterior(model, x, forcing=1, prior_std=10.0, observation=0.3, calibration="none")
    sharp = gibbs_posterior(
        model, x, forcing=1, prior_std=10.0, observation=0.15, calibration="temperature", block=20
    )
    known = right.values > 1.0
    # 200 blocks know six variances to a tenth each, all together to 4 %
    assert np.median(sharp.values[known] / right.values[known]) == pytest.approx(1.0, abs=0.2)


def test_leading_eigenpairs_are_enough_where_the_rest_is_silent():
    x = series(4, 300)
    model = fitted(x)
    full = gibbs_posterior(model, x, forcing=1, prior_std=0.5)
    # A and the diagonal of W move the same: two of eight directions are not seen
    few = gibbs_posterior(model, x, forcing=1, prior_std=0.5, leading=6)
    np.testing.assert_allclose(few.std, full.std, rtol=1e-6)


def test_outside_of_the_leading_eigenpairs_the_prior_rules():
    x = series(1, 60)
    model = fitted(x)
    posterior = gibbs_posterior(model, x, forcing=1, prior_std=0.5, block=6, observation=0.3, leading=2)
    operator = ITFOperator(model, x, 1, 0.3)
    values, vectors = np.linalg.eigh(59 * operator.dense())
    values, vectors = values[-2:], vectors[:, -2:]
    J = np.cov(operator.block_scores(6).T, ddof=1) * 10
    onto = vectors @ vectors.T
    A = np.linalg.inv(vectors * values @ vectors.T + 4.0 * np.eye(8))
    # ten blocks: Student's t with nine degrees of freedom
    expected = A @ (onto @ J @ onto * 9 / 7 + 4.0 * np.eye(8)) @ A
    # Lanczos finds the pairs to about 1e-8
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(expected)), rtol=1e-6)
    outside = (posterior.sample_theta(20_000) - model.theta) @ (np.eye(8) - onto)
    # six directions of the prior's variance; 20,000 draws know their sum to 0.6 %, five of those
    assert np.square(outside).sum(axis=1).mean() == pytest.approx(6 * 0.25, rel=0.03)


def test_blocks_are_longer_than_the_memory_of_weak_forcing():
    assert block_length(4000, Forcing.identity(1)) == 32  # twice the cube root
    assert block_length(4000, Forcing.identity(25)) == 50
    # (1 - 0.04)^k falls to 1/e after 25 steps, and with forcing at every third step after 75
    assert block_length(4000, Forcing.generalised(0.04)) == 50
    assert block_length(4000, Forcing.generalised(0.04, interval=3)) == 150
    # less forcing than the data can tell apart, and none: an eighth of the data
    assert block_length(4000, Forcing.generalised(1e-4)) == block_length(4000, Forcing.none()) == 500
    x = series(5, 200)
    scores = gibbs_posterior(fitted(x), x, forcing=Forcing.generalised(0.1), prior_std=1.0).scores
    assert len(scores) == 10  # of 20 steps


def test_errors_name_the_argument():
    x = series(5, 60)
    model = fitted(x)
    with pytest.raises(ValueError, match="calibration must be one of"):
        gibbs_posterior(model, x, forcing=1, prior_std=1.0, calibration="hot")
    with pytest.raises(ValueError, match="block must fit into x"):
        gibbs_posterior(model, x, forcing=1, prior_std=1.0, block=40)
    with pytest.raises(ValueError, match="block must leave twice as many blocks"):
        gibbs_posterior(model, x, forcing=1, prior_std=10.0, calibration="temperature", block=10)
    with pytest.raises(ValueError, match="observation must be given"):
        gibbs_posterior(model.with_theta(np.zeros(8)), np.zeros((20, 2)), forcing=1, prior_std=1.0)
    assert isinstance(
        gibbs_posterior(model, x, forcing=1, prior_std=1.0), type(laplace(model, np.eye(8), prior_std=1.0))
    )
