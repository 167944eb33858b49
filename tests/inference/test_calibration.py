"""On data drawn from a PAL-RNN the filter is honest about gates, and the true noise is preferred."""

import numpy as np
import pytest
from oracles.small_models import gated_model

from palrnn import PALRNN, rbpf


@pytest.fixture(scope="module")
def simulated_runs():
    model = gated_model(4, observed=3, latent=8, gate_std=0.3, process_std=0.3, observation_std=0.2, seed=8)
    return model, [model.sample(np.zeros(3), 301, seed=seed) for seed in range(6)]


def test_gates_open_as_often_as_the_filter_says(simulated_runs):
    model, runs = simulated_runs
    said, was = [], []
    for run in runs:
        said.append(rbpf(model, run.observations, particles=400, target="exact").gate_probability.ravel())
        was.append(run.codes.ravel())
    said, was = np.concatenate(said), np.concatenate(was)
    groups = np.clip((said * 10).astype(int), 0, 9)
    filled = 0
    for group in range(10):
        inside = groups == group
        if inside.sum() < 50:
            continue
        filled += 1
        expected = said[inside].mean()
        # four standard errors of a frequency, widened by what 400 particles leave open about a probability
        error = np.sqrt(expected * (1 - expected) / inside.sum() + 0.25 / 400 / 10)
        assert abs(was[inside].mean() - expected) < 4 * error, (
            f"said {expected:.2f}, was {was[inside].mean():.2f}"
        )
    # the curve has something to say: gates from almost surely closed to almost surely open
    assert filled == 10


@pytest.mark.parametrize("target", ["paper", "exact"])
@pytest.mark.parametrize("factor", [0.5, 0.75, 1.4, 2.0])
def test_the_true_observation_noise_beats_wrong_ones(simulated_runs, target, factor):
    model, runs = simulated_runs
    wrong = PALRNN(model.drift, model.process, factor * model.observation.std, model.gate_std, model.initial)
    scores = [
        sum(rbpf(tried, run.observations, particles=200, target=target).log_evidence for run in runs)
        for tried in (model, wrong)
    ]
    assert scores[0] > scores[1] + 5
