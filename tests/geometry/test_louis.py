import jax
import jax.numpy as jnp
import numpy as np
import pytest

from palrnn.geometry import louis_terms
from palrnn.model import ALRNN, PALRNN
from palrnn.model.families.alrnn_layout import row_indices

jax.config.update("jax_enable_x64", True)


def random_samples(latent, observed, gated, paths, draws, times, seed=0):
    """Return a model with unequal noise, and arbitrary codes and states: they need not be real draws."""
    rng = np.random.default_rng(seed)
    drift = ALRNN(
        rng.uniform(-1, 1, latent),
        rng.standard_normal((latent, latent)),
        rng.standard_normal(latent),
        rng.standard_normal((latent, observed)),
        gated,
    )
    model = PALRNN(drift, rng.uniform(0.2, 1.0, latent), 0.3, 0.4)
    codes = rng.random((paths, times - 1, gated)) < 0.5
    return model, codes, rng.standard_normal((paths, draws, times, latent))


def complete_log_density(theta, codes, states, variances):
    """The part of log p(x, z, c) that depends on theta, up to a constant."""
    dim, gated = states.shape[1], codes.shape[1]
    A, W, h = theta[:dim], theta[dim : dim + dim * dim].reshape(dim, dim), theta[dim + dim * dim :]
    gates = jnp.concatenate([jnp.ones((len(codes), dim - gated)), codes], axis=1)
    before, after = states[:-1], states[1:]
    residual = after - A * before - (gates * before) @ W.T - h
    return -0.5 * (residual**2 / variances).sum()


@pytest.mark.parametrize("gated", [0, 1, 3])
def test_scores_and_information_are_the_derivatives_of_the_complete_log_density(gated):
    model, codes, states = random_samples(3, 1, gated, paths=2, draws=2, times=6)
    terms = louis_terms(model, codes, states)
    theta, variances = jnp.array(model.drift.theta), model.process_variances
    gradient = jax.jit(jax.grad(complete_log_density))
    hessian = jax.jit(jax.hessian(complete_log_density))
    information = 0.0
    for s in range(2):
        for k in range(2):
            given = (codes[s].astype(float), states[s, k], variances)
            # the same few sums in another order
            np.testing.assert_allclose(terms.scores[s, k], gradient(theta, *given), rtol=1e-11, atol=1e-10)
            information -= hessian(theta, *given) / 4
    np.testing.assert_allclose(terms.complete, information, rtol=1e-11, atol=1e-10)
    assert terms.trace_complete == pytest.approx(np.trace(information), rel=1e-12)


def test_missing_is_the_covariance_of_the_scores_when_each_path_has_one_state():
    model, codes, states = random_samples(3, 1, 1, paths=12, draws=1, times=8)
    terms = louis_terms(model, codes, states)
    np.testing.assert_allclose(terms.missing, np.cov(terms.scores[:, 0].T), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(terms.observed, terms.complete - terms.missing)
    assert terms.missing_state is None
    assert terms.missing_switching is None
    assert terms.trace_missing_state is None
    assert "missing_state" not in terms.standard_errors


def test_the_parts_of_the_missing_information_add_up_to_it():
    model, codes, states = random_samples(3, 1, 2, paths=5, draws=4, times=8)
    terms = louis_terms(model, codes, states)
    total = terms.missing_state + terms.missing_switching
    np.testing.assert_allclose(total, terms.missing, atol=1e-12 * np.abs(terms.missing).max())
    # five different code paths, so each speaks for itself
    assert len(set(terms.groups)) == 5
    within = np.mean([np.cov(path.T) for path in terms.scores], axis=0)
    between = np.cov(terms.scores.mean(axis=1).T)
    scale = np.abs(terms.missing).max()
    np.testing.assert_allclose(terms.missing_state, within, atol=1e-12 * scale)
    np.testing.assert_allclose(terms.missing_switching, between - within / 4, atol=1e-12 * scale)


def test_the_split_is_unbiased_for_known_variances():
    # scores made by hand: the path contributes variance 4, the state given the path variance 9
    rng = np.random.default_rng(0)
    template = louis_terms(*random_samples(1, 1, 0, paths=3, draws=2, times=3))
    found = []
    for _ in range(4000):
        scores = 2.0 * rng.standard_normal((3, 1, 3)) + 3.0 * rng.standard_normal((3, 2, 3))
        terms = type(template)(template.blocks, scores, template.complete_traces, np.arange(3))
        found.append((terms.trace_missing, terms.trace_missing_state, terms.trace_missing_switching))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    # three parameters; four standard errors of the mean
    assert np.all(np.abs(mean - 3 * np.array([13.0, 9.0, 4.0])) < 4 * error)


def test_the_split_is_unbiased_when_some_code_paths_are_drawn_twice():
    # two codes: the first was drawn twice, with different gate inputs. Between codes the variance is 4,
    # between gate inputs of one code 1, between states 9; the lone path cannot see the part of the gate
    # inputs
    rng = np.random.default_rng(0)
    template = louis_terms(*random_samples(1, 1, 0, paths=3, draws=2, times=3))
    groups, found = np.array([0, 0, 1]), []
    for _ in range(4000):
        codes = 2.0 * rng.standard_normal((2, 1, 3))[groups]
        scores = codes + rng.standard_normal((3, 1, 3)) + 3.0 * rng.standard_normal((3, 2, 3))
        terms = type(template)(template.blocks, scores, template.complete_traces, groups)
        found.append(terms.trace_missing_state)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - 3 * (10.0 + 10.0 + 9.0) / 3) < 4 * error


def test_when_all_paths_have_the_same_codes_nothing_is_missing_to_switching():
    model, codes, states = random_samples(3, 1, 2, paths=5, draws=4, times=8)
    terms = louis_terms(model, np.repeat(codes[:1], 5, axis=0), states)
    assert set(terms.groups) == {0}
    assert np.abs(terms.missing_switching).max() < 1e-12 * np.abs(terms.missing).max()
    assert abs(terms.trace_missing_switching) < 1e-12 * terms.trace_missing


def test_traces_need_no_matrix_and_agree_with_it():
    model, codes, states = random_samples(4, 2, 2, paths=6, draws=3, times=9)
    codes[3] = codes[0]
    terms = louis_terms(model, codes, states)
    pairs = [
        (terms.trace_complete, terms.complete),
        (terms.trace_missing, terms.missing),
        (terms.trace_observed, terms.observed),
        (terms.trace_missing_state, terms.missing_state),
        (terms.trace_missing_switching, terms.missing_switching),
    ]
    for trace, matrix in pairs:
        assert trace == pytest.approx(np.trace(matrix), rel=1e-10)
    assert terms.mir == pytest.approx(1 - np.trace(terms.observed) / np.trace(terms.complete), rel=1e-10)


def test_standard_errors_are_the_jackknife_over_paths():
    model, codes, states = random_samples(3, 1, 1, paths=7, draws=3, times=8)
    codes[[1, 2, 5]], codes[6] = codes[0], codes[3]
    terms = louis_terms(model, codes, states)
    assert sorted(np.bincount(terms.groups)) == [1, 2, 4]
    without = [louis_terms(model, np.delete(codes, j, 0), np.delete(states, j, 0)) for j in range(7)]
    for name in ("complete", "missing", "observed", "missing_state", "missing_switching"):
        values = np.array([getattr(t, f"trace_{name}") for t in without])
        expected = np.sqrt(6 / 7 * ((values - values.mean()) ** 2).sum())
        assert terms.standard_errors[name] == pytest.approx(expected, rel=1e-8)
    ratios = np.array([t.mir for t in without])
    assert terms.standard_errors["mir"] == pytest.approx(np.sqrt(6 * ratios.var()), rel=1e-8)


def test_standard_errors_are_unknown_from_two_paths():
    terms = louis_terms(*random_samples(3, 1, 1, paths=2, draws=1, times=8))
    assert np.isnan(terms.standard_errors["missing"])
    assert np.isfinite(terms.standard_errors["complete"])


def test_products_and_leading_pairs_agree_with_the_matrix():
    terms = louis_terms(*random_samples(4, 2, 1, paths=6, draws=3, times=30))
    vectors = np.random.default_rng(1).standard_normal((24, 3))
    scale = np.abs(terms.observed).max()
    np.testing.assert_allclose(terms @ vectors, terms.observed @ vectors, atol=1e-11 * scale)
    np.testing.assert_allclose(terms @ vectors[:, 1], terms.observed @ vectors[:, 1], atol=1e-11 * scale)
    values, found = terms.leading(4)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(terms.observed)[::-1][:4], rtol=1e-9)
    np.testing.assert_allclose(terms.observed @ found, found * values, atol=1e-9 * scale)
    with pytest.raises(ValueError, match="v must be"):
        terms @ np.ones(3)


def test_the_diagonal_of_an_ungated_unit_is_collinear_with_its_weight():
    terms = louis_terms(*random_samples(4, 2, 2, paths=6, draws=3, times=30))
    for i in range(2):
        direction = np.zeros(24)
        direction[i], direction[4 + 4 * i + i] = 1.0, -1.0
        # exact in real arithmetic; the entries are sums of 29 numbers of order one over variances of order
        # 0.1
        assert np.abs(terms @ direction).max() < 1e-10 * np.abs(terms.observed).max()
    assert terms.informed_dimensions == 24 - 2


def test_missing_dimensions_count_directions_and_bound_the_samples():
    terms = louis_terms(*random_samples(3, 1, 1, paths=9, draws=1, times=40))
    inverse = np.linalg.pinv(terms.complete, rcond=1e-9, hermitian=True)
    assert terms.missing_dimensions == pytest.approx(np.trace(inverse @ terms.missing), rel=1e-6)
    # what the count promises: with fewer samples the estimate cannot be positive
    assert terms.missing_dimensions > terms.samples - 1
    assert np.linalg.eigvalsh(terms.observed).min() < 0


def test_rows_of_theta_are_where_the_blocks_say():
    at = row_indices(3)
    theta = np.arange(15)
    assert sorted(at.ravel()) == list(theta)
    assert at[1].tolist() == [1, 6, 7, 8, 13]


@pytest.mark.parametrize(
    ("codes", "states", "message"),
    [
        ((4, 5, 1), (4, 1, 6, 3), None),
        ((1, 5, 1), (1, 1, 6, 3), "S >= 2"),
        ((4, 6, 1), (4, 1, 6, 3), "codes must have shape"),
        ((4, 5, 1), (4, 6, 3), "states must have shape"),
    ],
)
def test_wrong_shapes_are_named(codes, states, message):
    model, _, _ = random_samples(3, 1, 1, paths=2, draws=1, times=3)
    if message is None:
        assert louis_terms(model, np.ones(codes), np.ones(states)).samples == 4
        return
    with pytest.raises(ValueError, match=message):
        louis_terms(model, np.ones(codes), np.ones(states))
