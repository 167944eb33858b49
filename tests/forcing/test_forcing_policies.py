"""Generalised teacher forcing, annealing, input noise and clipping do in training what they say."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.data import Standardizer, lorenz63
from palrnn.forcing import TrainConfig, itf_gradient, itf_loss, train
from palrnn.forcing.batches import Batches
from palrnn.forcing.kernels.updates import loss_and_gradient
from palrnn.model import Forcing, initial_alrnn
from palrnn.model.surrogate import training_vector


@pytest.fixture(scope="module")
def series():
    x = lorenz63(4000, seed=1)
    return Standardizer.fit(x).transform(x)


SMALL = TrainConfig(
    input_noise=0.0,
    gradient_clip=None,
    latent_dim=8,
    gated=3,
    tau=5,
    updates=1,
    batch_size=4,
    sequence_length=30,
    precision="double",
)


def first_batch(series, config):
    starts, noise = Batches([series], config).draws(0, 1)
    return series[starts[0][:, None] + np.arange(config.sequence_length)], noise


def test_generalised_forcing_learns_with_partial_strength_at_every_step(series):
    policy = Forcing.generalised(0.2)
    config = SMALL.changed(forcing=policy, updates=3000, learning_rate=5e-3)
    result, start = train(series, config), initial_alrnn(8, 3, 3)
    # scored as it was trained; measured: down by a factor of 70
    assert itf_loss(result.model, series, policy) < 0.1 * itf_loss(start, series, policy)


@pytest.mark.parametrize(("schedule", "middle"), [("linear", 0.55), ("exponential", np.sqrt(0.1))])
def test_the_strength_is_annealed_over_the_whole_run(series, schedule, middle):
    config = SMALL.changed(updates=100, final_alpha=0.1, alpha_schedule=schedule)
    strengths = config.forcing.strengths_of_updates(0, 101, 100)
    assert strengths[[0, 50, 100]] == pytest.approx([1.0, middle, 0.1], rel=1e-12)
    np.testing.assert_array_equal(train(series, config).history.alpha, strengths[:100])


def test_each_update_is_forced_with_its_own_strength(series):
    # two updates on a line from 0 to 1: the first runs freely, the second is half forced
    config = SMALL.changed(
        updates=2, alpha=0.0, final_alpha=1.0, alpha_schedule="linear", learning_rate=1e-12
    )
    losses = train(series, config.changed(final_learning_rate=1e-12)).history.loss
    starts, _ = Batches([series], config).draws(0, 2)
    model = initial_alrnn(8, 3, 3)
    for loss, rows, alpha in zip(losses, starts, (0.0, 0.5), strict=True):
        batch = series[rows[:, None] + np.arange(30)]
        assert loss == pytest.approx(itf_loss(model, batch, Forcing.generalised(alpha, 5)), rel=1e-9)


def test_input_noise_enters_the_network_but_not_the_targets(series):
    config = SMALL.changed(input_noise=0.3)
    clean, noise = first_batch(series, config)
    assert noise.shape == (1, 6, 4, 3)
    model = initial_alrnn(8, 3, 3)
    # a plain rollout with noisy inputs at steps 0, 5, 10, ... and errors against the clean series
    total = 0.0
    for b in range(4):
        z = model.embed(clean[b, 0] + noise[0, 0, b])
        for t in range(29):
            if t > 0 and t % 5 == 0:
                z = np.concatenate([clean[b, t] + noise[0, t // 5, b], z[3:]])
            z = model.step(z)
            total += np.sum((z[:3] - clean[b, t + 1]) ** 2)
    assert train(series, config).history.loss[0] == pytest.approx(total / 29 / 4, rel=1e-12)


def test_input_noise_has_the_asked_deviation_and_changes_from_update_to_update(series):
    _, noise = Batches([series], SMALL.changed(input_noise=0.3, updates=100)).draws(0, 100)
    # 7200 draws: the deviation is known to 0.8 percent, five standard errors allowed
    assert noise.std() == pytest.approx(0.3, rel=0.045)
    assert not np.array_equal(noise[0], noise[1])


def test_a_long_gradient_is_shortened_and_a_short_one_left_alone(series):
    batch, _ = first_batch(series, SMALL)
    start = initial_alrnn(8, 3, 3)
    _, gradient = itf_gradient(start, batch, 5)
    for clip, factor in ((gradient.norm / 4, 0.25), (gradient.norm * 4, 1.0)):
        result = train(series, SMALL.changed(gradient_clip=clip, learning_rate=0.01, optimizer="radam"))
        # the first step of RAdam is plain gradient descent
        np.testing.assert_allclose(result.model.W, start.W - 0.01 * factor * gradient.W, rtol=0, atol=1e-13)
        assert result.history.gradient_norm[0] == pytest.approx(gradient.norm, rel=1e-12)


def test_the_gradient_in_single_precision_at_the_papers_size_agrees_with_double(series):
    model = initial_alrnn(30, 3, 10, seed=3)
    starts = np.arange(16, dtype=np.int64) * 200
    _, expected = itf_gradient(model, np.stack([series[s : s + 200] for s in starts]), 16)
    x, theta = series.astype(np.float32), training_vector(model).astype(np.float32)
    sizes, data = (30, 10, None, False), (x, None, x[:, :0])
    settings = (200, 16, np.float32(1), np.float32(1e-25))
    _, gradient = loss_and_gradient(theta, sizes, data, starts, *settings, True)
    exact = np.concatenate([expected.theta, expected.E.ravel()])
    # float32 rounds to 6e-8; sums over 3184 terms leave a few 1e-6 of the largest entry
    np.testing.assert_allclose(gradient, exact, rtol=0, atol=1e-5 * np.abs(exact).max())
