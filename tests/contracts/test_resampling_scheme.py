"""What every resampling scheme must do. Whoever registers one runs this file: it takes all that there are."""

import numpy as np
import pytest
from oracles.small_models import drawn_series, gated_model

from palrnn import rbpf
from palrnn.inference.resampling import SCHEMES, resample, scheme

# a scheme in plain NumPy, as anyone may add one: it passes the same tests, and the filter runs with it


@scheme("plain multinomial")
def plain_multinomial(weights, uniforms, ancestors):
    """Independent draws, by bisection of the cumulative weights."""
    cumulative = np.cumsum(weights) / np.sum(weights)
    last = np.flatnonzero(weights)[-1]
    ancestors[:] = np.minimum(np.searchsorted(cumulative, uniforms, side="right"), last)


@pytest.fixture(scope="module", autouse=True)
def registered_here_only():
    yield
    del SCHEMES["plain multinomial"]


every_scheme = pytest.mark.parametrize("name", SCHEMES)


def ancestors_of(name, weights, n, rng):
    """What the scheme leaves in an array that was full of something else, from read-only weights."""
    weights, ancestors = np.array(weights, dtype=np.float64), np.full(n, -7, dtype=np.int32)
    before = weights.copy()
    SCHEMES[name](weights, rng.random(n), ancestors)
    np.testing.assert_array_equal(weights, before)
    return ancestors


@every_scheme
@pytest.mark.parametrize("n", [1, pytest.param(7, marks=pytest.mark.slow), 10])
def test_the_expected_number_of_offspring_is_proportional_to_the_weight(name, n):
    rng, runs = np.random.default_rng(0), 20_000
    weights = np.array([0.0, 0.31, 0.02, 0.5, 0.17, 0.0])
    counts = np.array([np.bincount(ancestors_of(name, weights, n, rng), minlength=6) for _ in range(runs)])
    # the variance of a count is at most n w (1 - w); 4.5 standard errors of the mean, for 18 such tests
    errors = np.sqrt(n * weights * (1 - weights) / runs)
    np.testing.assert_array_less(abs(counts.mean(axis=0) - n * weights), 4.5 * errors + 1e-12)


@every_scheme
def test_the_scale_of_the_weights_does_not_matter(name):
    weights = np.random.default_rng(1).dirichlet(np.ones(30))
    for scale in (1e-200, 3.0, 1e200):
        # the same random numbers; powers of ten round, but no cumulative weight comes that close to one
        one, other = (ancestors_of(name, w, 25, np.random.default_rng(2)) for w in (weights, scale * weights))
        np.testing.assert_array_equal(np.sort(one), np.sort(other))


@every_scheme
@pytest.mark.parametrize("weights", [[1.0], [0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]])
@pytest.mark.parametrize("n", [1, 5])
def test_all_ancestors_are_the_only_index_with_weight(name, weights, n):
    for seed in range(20):
        ancestors = ancestors_of(name, weights, n, np.random.default_rng(seed))
        np.testing.assert_array_equal(ancestors, np.argmax(weights))


@every_scheme
def test_indices_without_weight_are_never_drawn_whatever_the_numbers(name):
    """Also where uniform numbers are as close to 0 and 1 as can be, and weights of very different sizes."""
    weights = np.array([0.0, 1e-300, 0.5, 0.0, 0.5, 1e-17, 0.0])
    for uniforms in (np.full(6, 2.0**-54), np.full(6, 1 - 2.0**-53), np.linspace(0.01, 0.99, 6)):
        ancestors = np.full(6, -7, dtype=np.int32)
        SCHEMES[name](weights, uniforms, ancestors)
        assert ((ancestors >= 0) & (ancestors < 7)).all()
        assert (weights[ancestors] > 0).all()


@every_scheme
def test_resample_finds_the_scheme_and_tells_about_it(name):
    ancestors = resample([0.2, 0.8], 9, np.random.default_rng(3), scheme=name)
    assert ancestors.shape == (9,)
    assert f"``{name}``: {SCHEMES[name].__doc__.splitlines()[0]}" in resample.__doc__


@every_scheme
def test_the_filter_runs_with_it_and_its_evidence_is_unbiased(name):
    """Resampling at every second step must not shift the evidence that importance sampling estimates."""
    model = gated_model(2, observed=1, latent=3, seed=8)
    x = drawn_series(model, 7)
    schedule = np.arange(6) % 2 == 0
    plain = rbpf(model, x, particles=40_000, ess_threshold=0, seed=1).log_evidence
    runs = [rbpf(model, x, particles=50, schedule=schedule, resampling=name, seed=s) for s in range(400)]
    assert all(run.resampled[:-1].tolist() == schedule[:-1].tolist() for run in runs)
    ratios = np.exp([run.log_evidence - plain for run in runs])
    # the reference is 28 times as sure as the mean of 400 x 50 particles
    assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / np.sqrt(400)


@every_scheme
def test_the_filter_gives_the_same_numbers_again(name):
    model = gated_model(2, observed=1, latent=3, seed=8)
    x = drawn_series(model, 30)
    one, again = (rbpf(model, x, particles=20, resampling=name, ess_threshold=1.1) for _ in range(2))
    np.testing.assert_array_equal(one.ancestors, again.ancestors)
    assert one.log_evidence == again.log_evidence
    assert one.resampled[:-1].all()
    for t in range(1, 29):
        assert one.survivors[t - 1] == len(np.unique(one.ancestors[t]))


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="name must be new, there is a scheme 'systematic' already"):
        scheme("systematic")
