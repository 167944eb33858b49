"""The paper's estimator: Louis' identity from sampled gates and states."""

import numpy as np
import pytest
from geometry.test_observed_information import LIMIT, RUNS, discrepancy, small_model
from oracles.grid_evidence import derivatives, grid_log_evidence, linear_log_evidence

from palrnn.geometry import (
    GeometryConfig,
    IndefiniteInformationWarning,
    InformationConfig,
    louis_terms,
    observed_information,
)
from palrnn.inference import FewPathsWarning, rbpf, smooth
from palrnn.model import ALRNN, PALRNN, initial_alrnn

pytestmark = pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning")


def sampled(model, x, **budget):
    """One pass of the filter, unless told otherwise."""
    return observed_information(model, x, **({"states": "sampled", "passes": 1, "target": "paper"} | budget))


@pytest.fixture(scope="module")
def linear():
    model, x = small_model(0, steps=8)
    found = [sampled(model, x, particles=2, paths=128, states_per_path=32, seed=seed) for seed in range(RUNS)]
    return found, derivatives(linear_log_evidence, model, x)


def test_without_gates_louis_gives_the_hessian_of_the_kalman_likelihood(linear):
    found, (value, gradient, information) = linear
    assert found[0].log_evidence == pytest.approx(value, rel=1e-9)
    worst, precision = discrepancy([o.observed for o in found], information)
    assert worst < LIMIT
    assert precision < 0.02
    assert discrepancy([o.score for o in found], gradient)[0] < LIMIT


@pytest.mark.slow
def test_the_exact_target_gives_the_hessian_with_two_gates():
    model, x = small_model(2)
    _, gradient, information = derivatives(grid_log_evidence, model, x)
    budget = {
        "particles": 4000,
        "paths": 4000,
        "states_per_path": 4,
        "target": "exact",
        "method": "ancestors",
    }
    found = [sampled(model, x, seed=seed, **budget) for seed in range(RUNS)]
    assert discrepancy([o.observed for o in found], information)[0] < LIMIT
    assert discrepancy([o.score for o in found], gradient)[0] < LIMIT


def test_the_estimate_is_that_of_the_smoothed_samples():
    model, x = small_model(1, steps=12)
    found = sampled(model, x, particles=32, paths=6, states_per_path=3, seed=5)
    samples = smooth(rbpf(model, x, particles=32, seed=5), paths=6, states_per_path=3, seed=5)
    terms = louis_terms(model, samples.codes, samples.states)
    assert np.array_equal(found.terms[0].scores, terms.scores)
    assert np.array_equal(found.observed, terms.observed)
    assert np.array_equal(found.missing_switching, terms.missing_switching)
    assert found.traces == terms.traces
    assert np.array_equal(found.distinct, samples.distinct)
    assert found.steps == 12


def test_the_papers_settings_have_a_name():
    model, x = small_model(1, steps=30)
    found = observed_information(model, x, InformationConfig.paper())
    assert (found.config.states, found.config.particles, found.samples) == ("sampled", 64, 8)
    assert len(found.filtered) == 1
    # one pass says nothing about the spread of passes
    assert np.isnan(found.standard_errors["observed"])
    assert GeometryConfig.paper().changed(seed=3).paths == 8


def test_several_passes_are_averaged_and_give_an_error():
    model, x = small_model(1, steps=12)
    found = sampled(model, x, particles=32, paths=6, states_per_path=3, passes=3)
    alone = [part.traces["observed"] for part in found.terms]
    assert found.trace_observed == pytest.approx(np.mean(alone), rel=1e-12)
    assert found.standard_errors["observed"] == pytest.approx(np.std(alone, ddof=1) / np.sqrt(3), rel=1e-9)
    np.testing.assert_allclose(found.observed, np.mean([part.observed for part in found.terms], axis=0))
    vector = np.arange(float(found.parameters))
    np.testing.assert_allclose(found @ vector, found.observed @ vector, rtol=1e-9)


@pytest.mark.parametrize("target", ["paper", "exact"])
def test_known_gates_leave_nothing_missing_to_switching(target):
    # the gated unit stays near 5, fifty deviations above the boundary, and the gate is all but hard
    drift = ALRNN([0.2, 0.2], [[0.5, 0.1], [0.0, 0.1]], [0.0, 3.5], [[1.0], [10.0]], 1)
    model = PALRNN(drift, 0.1, 0.1, 1e-3)
    x = model.sample([0.5], 8, seed=2).observations
    found = sampled(model, x, particles=64, paths=64, states_per_path=32, target=target)
    # the entropy of weights that sum to one up to rounding
    assert abs(found.code_entropy) < 1e-12
    assert np.abs(found.missing_switching).max() < 1e-12 * np.abs(found.missing).max()
    assert found.trace_missing_state == pytest.approx(found.trace_missing, rel=1e-12)


def test_many_samples_are_drawn_in_batches_of_bounded_size(monkeypatch):
    model, x = small_model(1, steps=12)
    whole = sampled(model, x, particles=64, paths=400, states_per_path=4)
    monkeypatch.setattr("palrnn.geometry.sampled._BATCH", 50 * 4 * 12 * 2)
    seen = []
    parts = sampled(
        model,
        x,
        particles=64,
        paths=400,
        states_per_path=4,
        progress=lambda done, total, _: seen.append(done),
    )
    assert seen == list(range(50, 401, 50))
    assert parts.terms[0].scores.shape == whole.terms[0].scores.shape
    # other draws of the same law
    errors = [found.terms[0].standard_errors["observed"] for found in (parts, whole)]
    assert abs(parts.trace_observed - whole.trace_observed) < 4 * np.hypot(*errors)


def test_too_few_samples_give_a_warning_that_says_how_many_it_takes():
    model, x = small_model(1, steps=30)
    with pytest.warns(IndefiniteInformationWarning, match=r"3 samples cannot .* it takes at least \d+"):
        few = sampled(model, x, particles=32, paths=3)
    assert few.needed_samples > 3
    assert np.linalg.eigvalsh(few.observed).min() < 0


def test_a_warning_says_when_more_is_missing_than_there_is():
    # an untrained model, far from the data and sure of itself: its scores vary more than its information
    model = PALRNN(initial_alrnn(6, 1, 2), 0.1, 0.1, 0.1)
    x = np.random.default_rng(0).standard_normal((30, 1))
    with pytest.warns(IndefiniteInformationWarning, match="may not be concave"):
        sampled(model, x, particles=64, paths=8)


def test_paths_that_have_coalesced_give_a_warning():
    model, x = small_model(1, steps=40)
    with pytest.warns(FewPathsWarning, match="different particles"):
        sampled(model, x, particles=4, paths=64, states_per_path=8)


def test_only_models_that_its_formulas_know_are_sampled():
    model, x = small_model(1, steps=12)
    full = PALRNN(model.drift, [[0.25, 0.1], [0.1, 0.25]], 0.4, 0.4)
    with pytest.raises(ValueError, match=r"diagonal process noise .* states='exact' takes every model"):
        sampled(full, x, particles=8, paths=4)
    assert np.isfinite(observed_information(full, x, particles=8, paths=4).trace_observed)
