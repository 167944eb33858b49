"""Training: it learns, it is reproducible, and it says what went wrong."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.data import Standardizer, lorenz63
from palrnn.forcing import TrainConfig, TrainingDivergedError, itf_loss, train
from palrnn.model import initial_alrnn


@pytest.fixture(scope="module")
def series():
    x = lorenz63(4000, seed=1)
    return Standardizer.fit(x).transform(x)


SMALL = TrainConfig(
    latent_dim=8, gated=3, tau=5, updates=250, batch_size=4, sequence_length=30, input_noise=0.0
)


def parameters(model):
    return np.concatenate([model.theta, model.E.ravel()])


def test_training_lowers_the_loss_on_the_series(series):
    result = train(series, SMALL.changed(updates=3000, learning_rate=5e-3))
    start = initial_alrnn(8, 3, 3, seed=0)
    # measured: down by a factor of 100; a gradient with a wrong term stays far above
    assert itf_loss(result.model, series, 5) < 0.05 * itf_loss(start, series, 5)


def test_history_has_one_entry_per_update(series):
    history = train(series, SMALL).history
    assert len(history) == len(history.gradient_norm) == len(history.seconds) == 250
    assert history.learning_rate[0] == pytest.approx(3e-3)
    # the rate falls by the same factor each update and would reach the final rate after the last
    np.testing.assert_allclose(
        history.learning_rate[1:] / history.learning_rate[:-1], (1 / 300) ** (1 / 250), rtol=1e-12
    )


def test_one_update_is_one_radam_step_on_the_gradient_of_the_drawn_batch(series):
    from palrnn.forcing import itf_gradient
    from palrnn.forcing.batches import Batches

    config = SMALL.changed(updates=1, precision="double", learning_rate=0.01, optimizer="radam")
    starts, _ = Batches([series], config).draws(0, 1)
    batch = series[starts[0][:, None] + np.arange(30)]
    start = initial_alrnn(8, 3, 3, seed=0)
    loss, gradient = itf_gradient(start, batch, 5)
    result = train(series, config)
    assert result.history.loss[0] == pytest.approx(loss, rel=1e-12)
    assert result.history.gradient_norm[0] == pytest.approx(gradient.norm, rel=1e-12)
    # the first RAdam step is unrectified: plain gradient descent
    np.testing.assert_allclose(result.model.W, start.W - 0.01 * gradient.W, rtol=0, atol=1e-14)
    np.testing.assert_allclose(result.model.E, start.E - 0.01 * gradient.E, rtol=0, atol=1e-14)


def test_the_same_seed_gives_the_same_model_and_another_seed_another(series):
    one, two = train(series, SMALL), train(series, SMALL)
    other = train(series, SMALL.changed(seed=1))
    assert parameters(one.model).tobytes() == parameters(two.model).tobytes()
    assert not np.array_equal(parameters(one.model), parameters(other.model))


def test_batches_never_cross_trials(series):
    from palrnn.forcing.batches import BLOCK, Batches

    trials = [series[:30], series[100:140], series[200:231]]
    starts, _ = Batches(trials, SMALL.changed(batch_size=64)).draws(0, BLOCK)
    # 1 + 11 + 2 possible stretches of 30 rows: all of them occur, and no others
    assert sorted(set(starts.ravel())) == [0, *range(30, 41), 70, 71]


def test_single_precision_training_agrees_with_double(series):
    # 50 updates: long enough to notice a wrong term, short enough that chaos does not amplify rounding
    single = train(series, SMALL.changed(updates=50))
    double = train(series, SMALL.changed(updates=50, precision="double"))
    np.testing.assert_allclose(parameters(single.model), parameters(double.model), rtol=0, atol=1e-4)


def test_divergence_names_the_update_and_keeps_the_last_good_model(series):
    with pytest.raises(
        TrainingDivergedError, match=r"diverged at update \d+.*gradient_clip.*learning_rate"
    ) as caught:
        train(series, SMALL.changed(learning_rate=1e4, final_learning_rate=1e4, tau=1000))
    assert 1 < caught.value.update <= 250
    assert np.isfinite(parameters(caught.value.model)).all()


@pytest.mark.parametrize("updates", [1, 2, 250])
def test_parameters_that_overflow_are_divergence_too(series, updates):
    # a step of this length leaves the range of float32 at once, before any loss could tell
    config = SMALL.changed(learning_rate=1e38, final_learning_rate=1e38, updates=updates, gradient_clip=None)
    config = config.changed(optimizer="radam")
    with pytest.raises(TrainingDivergedError, match="diverged at update") as caught:
        train(100 * series, config)
    assert np.isfinite(parameters(caught.value.model)).all()


@pytest.mark.parametrize(
    ("changes", "x", "words"),
    [
        ({}, np.zeros((20, 3)), "sequence_length = 30"),
        ({"latent_dim": 3, "gated": 1}, np.zeros((50, 4)), "latent_dim = 3"),
        ({}, np.full((50, 3), np.inf), "x must be finite"),
    ],
)
def test_wrong_data_is_named(changes, x, words):
    with pytest.raises(ValueError, match=words):
        train(x, SMALL.changed(**changes))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"latent_dim": 4, "gated": 5}, "gated"),
        ({"tau": 0}, "tau"),
        ({"keep": "best"}, "evaluate_every"),
        ({"alpha": 1.1}, "alpha"),
        ({"final_alpha": 0.0}, "linear"),
        ({"learning_rat": 1.0}, "learning_rat is not a known setting"),
    ],
)
def test_wrong_settings_are_named(values, words):
    with pytest.raises(ValueError, match=words):
        TrainConfig(**values)
