"""Learning from series with gaps: against automatic differentiation, and against learning without gaps."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from families.plain_alrnn import PlainALRNN
from oracles import teacher_forcing as plain
from oracles.forced_jacobian import gauss_newton
from oracles.networks import random_network

import palrnn
from palrnn import Forcing, TrainConfig, itf_fisher, itf_gradient, itf_loss
from palrnn.forcing.batches import Batches
from palrnn.geometry import ITFOperator

QUICK = TrainConfig(latent_dim=6, gated=2, updates=40, batch_size=4, sequence_length=20, forcing=4)


def with_gaps(x, seed, share=0.4):
    """A copy with NaN in some entries; first rows stay whole."""
    lost = np.random.default_rng(seed).random(x.shape) < share
    lost[..., 0, :] = False
    return np.where(lost, np.nan, x)


autodiff = jax.jit(jax.value_and_grad(plain.batch_loss), static_argnums=(2, 3))


@pytest.mark.parametrize("tau", [1, 3, 20])
def test_the_gradient_equals_autodiff_wherever_the_gaps_are(tau):
    # nine sequences: eight that go together, and one by itself
    model = random_network(5, 2, 3, seed=tau, gain=0.6)
    x = np.random.default_rng(tau).standard_normal((9, 10, 2))
    for share, alpha in ((0.1, 1.0), (0.5, 0.3), (0.9, 1.0), (0.5, 0.0)):
        gappy = with_gaps(x, tau, share)
        parameters = (model.A, model.W, model.h, model.E)
        expected_loss, expected = autodiff(parameters, gappy, model.gated, tau, alpha)
        scale = max(float(np.abs(part).max()) for part in expected)
        for each in (model, PlainALRNN(model)):
            loss, gradient = itf_gradient(each, gappy, Forcing.generalised(alpha, tau))
            assert loss == pytest.approx(float(expected_loss), rel=1e-10)
            assert itf_loss(each, gappy, Forcing.generalised(alpha, tau)) == loss
            for name, part in zip("AWhE", expected, strict=True):
                # both are exact up to rounding in float64
                np.testing.assert_allclose(getattr(gradient, name), part, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("family", [lambda network: network, PlainALRNN], ids=["compiled", "plain"])
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_the_fisher_equals_the_gauss_newton_matrix_of_autodiff(family, alpha):
    model = random_network(5, 2, 3, seed=1, gain=0.6)
    x = with_gaps(np.random.default_rng(1).standard_normal((30, 2)), 1)
    std = np.array([0.2, 0.5])
    operator = ITFOperator(family(model), x, Forcing.generalised(alpha, 3), std)
    expected = gauss_newton(model, x, 3, std, alpha)
    allowed = 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(operator.dense(), expected, rtol=0, atol=allowed)
    np.testing.assert_allclose(operator @ np.eye(len(expected)), expected, rtol=0, atol=allowed)
    assert operator.trace() == pytest.approx(np.trace(expected), rel=1e-9)
    assert operator.max_rank == min(np.count_nonzero(~np.isnan(x[1:])), len(expected))


def test_correlated_noise_counts_between_what_was_seen_together():
    model = random_network(4, 2, 2, seed=2, gain=0.6)
    x = with_gaps(np.random.default_rng(2).standard_normal((25, 2)), 2)
    R = np.array([[0.04, 0.03], [0.03, 0.09]])
    # one step at a time: the part of R that belongs to what was seen, inverted
    expected = np.zeros((24, 24))
    for pattern, weight in (
        ([True, True], np.linalg.inv(R)),
        ([True, False], np.diag([1 / R[0, 0], 0])),
        ([False, True], np.diag([0, 1 / R[1, 1]])),
    ):
        steps = (~np.isnan(x[1:]) == pattern).all(axis=1)
        expected += _information(model, x, 3, weight, steps)
    operator, allowed = ITFOperator(model, x, 3, R), 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(operator.dense(), expected, rtol=0, atol=allowed)
    np.testing.assert_allclose(operator @ np.eye(24), expected, rtol=0, atol=allowed)
    assert operator.trace() == pytest.approx(np.trace(expected), rel=1e-9)


def _information(model, x, tau, weight, steps):
    from oracles.forced_jacobian import _jacobian

    forcing = Forcing.identity(tau).strengths(len(x) - 1)[:, None] * ~np.isnan(x[:-1])
    rows = np.asarray(_jacobian(model.theta, model.E, model.gated, np.nan_to_num(x), forcing))[steps]
    return np.einsum("tnp,nm,tmq->pq", rows, weight, rows) / (len(x) - 1)


def test_with_nothing_missing_the_kernel_for_gaps_gives_the_paper_s_loss():
    # a gap in one sequence makes all of them go through the kernel for gaps
    model = random_network(6, 2, 3, seed=3, gain=0.5)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 30, 2))
    lone = np.full((30, 2), np.nan)
    lone[0], lone[1, 0] = 0.0, model.step(model.embed([0.0, 0.0]))[0]  # one value, predicted exactly
    loss, gradient = itf_gradient(model, x, 5)
    padded_loss, padded = itf_gradient(model, np.concatenate([x, lone[None]]), 5)
    share = (2 * 29 * 2) / (2 * 29 * 2 + 1)  # one entry more, without error
    assert padded_loss == pytest.approx(share * loss, rel=1e-12)
    # the value that is predicted exactly has no error and therefore no pull
    np.testing.assert_allclose(padded.theta, share * gradient.theta, rtol=0, atol=1e-12 * gradient.norm)


def test_training_sequences_start_where_everything_was_seen():
    x = with_gaps(np.random.default_rng(4).standard_normal((300, 2)), 4)
    batches = Batches([x[:120], x[120:]], QUICK.changed(batch_size=50))
    starts, _ = batches.draws(0, 100)
    possible = [t for t in range(300) if t % 300 not in range(101, 120) and t <= 280]
    possible = [t for t in possible if not np.isnan(x[t]).any()]
    assert sorted(set(starts.ravel())) == possible


@pytest.mark.parametrize("precision", ["single", "double"])
def test_training_with_gaps_learns_what_training_without_them_learns(precision):
    x = palrnn.lorenz63(4000, seed=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    config = TrainConfig(
        latent_dim=10,
        gated=4,
        updates=600,
        sequence_length=50,
        forcing=8,
        learning_rate=1e-2,
        precision=precision,
    )
    start = itf_loss(palrnn.initial_alrnn(10, 3, 4), x[:1000], 8)
    whole, gappy = (
        palrnn.train(part, config, progress=lambda *_: None).model for part in (x, with_gaps(x, 5, 0.3))
    )
    losses = [itf_loss(model, x[:1000], 8) for model in (whole, gappy)]
    # measured: from 2.5 to 0.20 without gaps, and to 0.23 with 30 % of the values missing
    assert losses[0] < 0.1 * start
    assert losses[1] < 1.5 * losses[0]


def test_a_run_with_gaps_continues_bit_for_bit(tmp_path):
    x = with_gaps(np.random.default_rng(7).standard_normal((200, 2)), 7)
    config = QUICK.changed(checkpoint_every=10, forcing=Forcing.adaptive())
    whole = palrnn.train(x, config, progress=lambda *_: None)

    def interrupted(done, total, figures):
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        palrnn.train(x, config, run=tmp_path, progress=interrupted)
    again = palrnn.train(x, config, run=tmp_path, progress=lambda *_: None)
    assert again.model.theta.tobytes() == whole.model.theta.tobytes()


def test_adaptive_forcing_follows_the_rows_that_were_seen():
    model = random_network(5, 2, 3, seed=8, gain=1.0)
    x = np.random.default_rng(8).standard_normal((3, 20, 2))
    lost = x.copy()
    lost[:, 5] = np.nan
    # the same steps, without the one that was lost: its row does not count
    policy = Forcing.adaptive(0.0)
    assert policy.adapted(0.0, model, lost) == pytest.approx(
        policy.adapted(0.0, model, np.delete(x, 5, axis=1)), rel=1e-12
    )


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.where(np.arange(2) == 1, np.nan, np.zeros((60, 2))), "x must hold values in every column, col"),
        (
            np.where(np.arange(60)[:, None] % 2 == np.arange(2), np.nan, 1.0),
            "x must have a row without gaps for a training sequence of sequence_length = 20 rows",
        ),
        (np.where(np.arange(60)[:, None] < 50, np.nan, np.ones((60, 2))), "x must have a row without gaps"),
        (np.where(np.arange(60)[:, None] > 0, np.nan, np.ones((60, 2))), "x must have a row without gaps"),
    ],
    ids=["a column never seen", "a gap in every row", "whole rows too late", "one row alone"],
)
def test_series_that_no_sequence_can_start_in_are_refused(x, words):
    with pytest.raises(ValueError, match=words):
        palrnn.train(x, QUICK)


def test_the_fisher_needs_a_first_row_and_something_after_it():
    model = random_network(4, 2, 2, seed=2)
    with pytest.raises(ValueError, match=r"x\[0\] must have no gaps"):
        itf_fisher(model, np.array([[np.nan, 0.0], [0.0, 0.0]]), 3, 0.1)
    with pytest.raises(ValueError, match="x must hold a value after its first row"):
        itf_fisher(model, np.array([[0.0, 0.0], [np.nan, np.nan]]), 3, 0.1)
