"""On tiny models the sum over all gate paths is known; the filter must converge to it, and without bias."""

from typing import NamedTuple

import numpy as np
import pytest
from oracles.gate_paths import Paths, simulated, with_integrated_probit, with_orthant_probabilities
from oracles.small_models import drawn_series, gated_model

from palrnn import PALRNN, rbpf

# gates, times, seed of a model for which the two targets differ by a tenth
CASES = {"one gate, five times": (1, 5, 4), "two gates, four times": (2, 4, 8)}
ENUMERATION = {"paper": with_integrated_probit, "exact": with_orthant_probabilities}


class Tiny(NamedTuple):
    model: PALRNN
    x: np.ndarray
    paths: dict[str, Paths]


@pytest.fixture(scope="module", params=CASES, ids=str)
def tiny(request):
    gated, times, seed = CASES[request.param]
    model = gated_model(gated, seed=seed)
    x = drawn_series(model, times)
    return Tiny(model, x, {target: enumerated(model, x) for target, enumerated in ENUMERATION.items()})


def estimates(model, x, *, seeds, **settings):
    return np.exp([rbpf(model, x, seed=seed, **settings).log_evidence for seed in range(seeds)])


def agrees(values, truth):
    """Within 4 standard errors of a Monte Carlo mean: a false alarm once in 16,000; the seeds are fixed."""
    return abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("target", ENUMERATION)
def test_the_mean_of_the_evidence_estimate_is_the_enumerated_sum(tiny, target):
    model, x, paths = tiny
    truth = paths[target].evidence
    # few particles, resampled at every step: a biased estimator would show here
    assert agrees(estimates(model, x, seeds=2000, particles=6, target=target, ess_threshold=2.0), truth)


@pytest.mark.parametrize("target", ENUMERATION)
def test_many_particles_converge_to_the_enumerated_sum(tiny, target):
    model, x, paths = tiny
    truth = paths[target].evidence
    values = estimates(model, x, seeds=10, particles=8000, target=target)
    assert agrees(values, truth)
    # and closely: the relative error of one run falls as 1 / sqrt(particles)
    assert values.std() / truth < 0.03


def test_the_targets_differ_by_more_than_the_noise_of_these_tests(tiny):
    assert abs(tiny.paths["paper"].evidence / tiny.paths["exact"].evidence - 1) > 0.08


def test_the_orthant_sum_is_the_evidence_of_the_simulated_model(tiny):
    runs = simulated(tiny.model, tiny.x, 400_000, seed=0)
    assert agrees(runs.likelihood, tiny.paths["exact"].evidence)


@pytest.mark.parametrize("target", ENUMERATION)
def test_hard_gates_agree_with_enumeration(target):
    model = gated_model(2, gate_std=0.0, seed=8)
    x = drawn_series(model, 4)
    truth = ENUMERATION[target](model, x).evidence
    assert agrees(estimates(model, x, seeds=600, particles=32, target=target), truth)


def test_filtered_gate_probabilities_equal_enumeration_at_the_last_step(tiny):
    for target, paths in tiny.paths.items():
        filtered = rbpf(tiny.model, tiny.x, particles=20_000, target=target)
        # 20,000 particles: a standard error of at most 0.0035 times sqrt(n / ess), which is below 2 here
        np.testing.assert_allclose(filtered.gate_probability[-1], paths.gate_marginals[-1], atol=0.028)


@pytest.mark.parametrize("resampling", ["multinomial", "systematic", "stratified", "residual"])
def test_every_resampling_scheme_leaves_the_estimate_unbiased(resampling):
    model = gated_model(1, seed=4)
    x = drawn_series(model, 5)
    truth = with_orthant_probabilities(model, x).evidence
    values = estimates(
        model, x, seeds=1000, particles=8, target="exact", resampling=resampling, ess_threshold=2.0
    )
    assert agrees(values, truth)


def test_resampling_always_alternately_and_never_agree_in_mean():
    model = gated_model(2, seed=8)
    x = drawn_series(model, 8)
    plans = {"always": np.ones(7), "alternately": np.arange(7) % 2, "never": np.zeros(7)}
    runs = {name: estimates(model, x, seeds=800, particles=16, schedule=plan) for name, plan in plans.items()}
    for name in ("always", "alternately"):
        gap = runs[name].mean() - runs["never"].mean()
        error = np.hypot(runs[name].std(), runs["never"].std()) / np.sqrt(800)
        assert abs(gap) < 4 * error, name
