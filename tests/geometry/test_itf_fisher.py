import numpy as np
import pytest
from families.plain_alrnn import PlainALRNN
from oracles.forced_jacobian import _jacobian, gauss_newton

from palrnn.geometry import ITFOperator, itf_fisher, itf_trace
from palrnn.model import ALRNN, PALRNN, Forcing

# (latent, observed, gated, tau, T, alpha): no gate, all gated, all observed, never forced, always forced, GTF
CASES = [
    (4, 2, 2, 3, 12, 1.0),
    (3, 1, 0, 4, 15, 1.0),
    (3, 3, 3, 5, 11, 1.0),
    (5, 2, 1, 100, 9, 1.0),
    (4, 1, 2, 1, 8, 0.3),
    (6, 3, 4, 2, 10, 0.7),
    (1, 1, 1, 2, 6, 1.0),
    (2, 1, 1, 3, 2, 1.0),
]


def random_case(latent, observed, gated, tau, steps, alpha):
    rng = np.random.default_rng([latent, observed, gated, tau, steps])
    model = ALRNN(
        rng.uniform(-0.7, 0.7, latent),
        0.5 * rng.standard_normal((latent, latent)),
        0.3 * rng.standard_normal(latent),
        rng.standard_normal((latent, observed)),
        gated,
    )
    return model, rng.standard_normal((steps, observed)), tau, alpha


@pytest.mark.parametrize("family", [lambda network: network, PlainALRNN], ids=["compiled", "plain"])
@pytest.mark.parametrize("case", CASES)
def test_itf_fisher_equals_the_gauss_newton_matrix_of_automatic_differentiation(case, family):
    model, x, tau, alpha = random_case(*case)
    fisher = itf_fisher(family(model), x, Forcing.generalised(alpha, tau), 0.2)
    expected = gauss_newton(model, x, tau, 0.2, alpha)
    # both are exact up to rounding; the recursion is well conditioned on these short rollouts
    np.testing.assert_allclose(fisher, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("case", CASES)
def test_trace_and_products_agree_with_the_dense_matrix(case):
    model, x, tau, alpha = random_case(*case)
    operator = ITFOperator(model, x, Forcing.generalised(alpha, tau), 0.2)
    dense = operator.dense()
    vectors = np.random.default_rng(0).standard_normal((len(dense), 3))
    assert operator.trace() == pytest.approx(np.trace(dense), rel=1e-12)
    assert itf_trace(model, x, Forcing.generalised(alpha, tau), 0.2) == operator.trace()
    # one rounding error per step, relative to the largest entry
    scale = np.abs(dense @ vectors).max()
    np.testing.assert_allclose(operator @ vectors, dense @ vectors, atol=1e-12 * scale)
    np.testing.assert_allclose(operator @ vectors[:, 0], dense @ vectors[:, 0], atol=1e-12 * scale)


@pytest.mark.parametrize("case", CASES)
def test_the_factor_holds_what_each_step_adds(case):
    model, x, tau, alpha = random_case(*case)
    operator = ITFOperator(model, x, Forcing.generalised(alpha, tau), 0.2)
    factor = operator.factor()
    assert factor.shape == (len(x) - 1, x.shape[1], model.theta.size)
    dense = operator.dense()
    summed = np.einsum("tnp,tnq->pq", factor, factor)
    # the same products in another order
    np.testing.assert_allclose(summed, dense, rtol=1e-12, atol=1e-13 * np.abs(dense).max())
    # the first prediction depends on theta through one step only, however the rollout goes on
    first = ITFOperator(model, x[:2], Forcing.generalised(alpha, tau), 0.2).factor()
    np.testing.assert_allclose(factor[0] * np.sqrt(len(x) - 1), first[0], rtol=1e-12, atol=1e-14)


def test_lanczos_gives_the_leading_eigenpairs_of_the_dense_matrix():
    model, x, tau, alpha = random_case(6, 3, 4, 4, 40, 1.0)
    operator = ITFOperator(model, x, Forcing.generalised(alpha, tau), 0.1)
    values, vectors = operator.leading(5)
    expected = np.linalg.eigvalsh(operator.dense())[::-1][:5]
    # eigsh converges to machine precision by default
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_allclose(operator @ vectors, vectors * values, atol=1e-9 * values[0])


def test_one_deviation_per_coordinate_weights_the_rows():
    model, x, tau, _ = random_case(4, 2, 2, 3, 12, 1.0)
    std = np.array([0.1, 0.4])
    expected = gauss_newton(model, x, tau, std)
    np.testing.assert_allclose(itf_fisher(model, x, tau, std), expected, atol=1e-9 * np.abs(expected).max())


def test_a_long_series_is_accumulated_in_chunks_without_changing_the_result(monkeypatch):
    model, x, tau, _ = random_case(4, 2, 2, 3, 50, 1.0)
    whole = itf_fisher(model, x, tau, 0.1)
    monkeypatch.setattr("palrnn.geometry.itf._CHUNK", 7 * 2 * 24)  # seven steps of two rows of p = 24 numbers
    np.testing.assert_allclose(
        itf_fisher(model, x, tau, 0.1), whole, rtol=1e-12, atol=1e-12 * np.abs(whole).max()
    )


def test_a_palrnn_is_measured_through_its_drift():
    model, x, tau, _ = random_case(4, 2, 2, 3, 12, 1.0)
    assert np.array_equal(
        itf_fisher(PALRNN(model, 0.1, 0.1, 0.1), x, tau, 0.1), itf_fisher(model, x, tau, 0.1)
    )


def test_the_rank_is_bounded_by_the_number_of_predictions():
    model, x, tau, _ = random_case(6, 2, 2, 3, 6, 1.0)
    operator = ITFOperator(model, x, tau, 0.1)
    assert operator.max_rank == 10
    assert np.linalg.matrix_rank(operator.dense()) <= 10


def test_a_model_too_large_for_its_matrix_still_has_a_trace_and_leading_directions():
    # p = 3,720 here to be quick; the dense matrix is never built
    rng = np.random.default_rng(0)
    model = ALRNN(
        rng.uniform(0, 0.9, 60), 0.02 * rng.standard_normal((60, 60)), np.zeros(60), np.ones((60, 3)), 10
    )
    operator = ITFOperator(model, rng.standard_normal((30, 3)), 4, 0.1)
    values, vectors = operator.leading(operator.max_rank)
    # all 87 nonzero eigenvalues together are the trace
    assert values.sum() == pytest.approx(operator.trace(), rel=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-9)


def test_a_forced_rollout_that_diverges_is_an_error_that_names_the_step():
    model = ALRNN([3.0], [[0.0]], [0.0], [[1.0]], 0)
    with pytest.raises(ValueError, match="diverged at step"):
        itf_fisher(model, np.ones((60, 1)), 100, 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forcing": 0}, "forcing must be >= 1"),
        ({"observation": 0.0}, "observation must be greater than 0"),
        ({"observation": np.ones(3)}, r"observation must be one number or have shape \(2,\)"),
        ({"forcing": "often"}, "forcing must be a Forcing or a number of steps"),
        ({"x": np.ones((5, 3))}, "x must have 2 columns"),
        ({"model": "net"}, "model must be an ALRNN"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    model, x, _, _ = random_case(4, 2, 2, 3, 12, 1.0)
    arguments = {"model": model, "x": x, "forcing": 3, "observation": 0.1} | change
    with pytest.raises(ValueError, match=message):
        itf_fisher(**arguments)


def test_products_want_vectors_of_the_right_length():
    model, x, tau, _ = random_case(4, 2, 2, 3, 12, 1.0)
    with pytest.raises(ValueError, match="v must be"):
        ITFOperator(model, x, tau, 0.1) @ np.ones(3)


def test_correlated_observation_noise_weights_the_rows_by_its_inverse():
    model, x, tau, _ = random_case(4, 2, 2, 3, 12, 1.0)
    R = np.array([[0.04, 0.03], [0.03, 0.09]])
    rows = np.asarray(_jacobian(model.theta, model.E, model.gated, x, Forcing.identity(tau).strengths(11)))
    expected = np.einsum("tnp,nm,tmq->pq", rows, np.linalg.inv(R), rows) / 11
    operator, allowed = ITFOperator(model, x, tau, R), 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(operator.dense(), expected, rtol=0, atol=allowed)
    np.testing.assert_allclose(operator @ np.eye(24), expected, rtol=0, atol=allowed)
    assert operator.trace() == pytest.approx(np.trace(expected), rel=1e-9)
