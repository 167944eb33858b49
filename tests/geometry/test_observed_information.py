import numpy as np
import pytest
from oracles.grid_evidence import derivatives, grid_log_evidence, linear_log_evidence

from palrnn.geometry import IndefiniteInformationWarning, louis_terms, observed_information
from palrnn.inference import rbpf, smooth
from palrnn.model import ALRNN, PALRNN, initial_alrnn

RUNS = 16


def small_model(gated, *, gate_std=0.4, steps=5, seed=0):
    rng = np.random.default_rng(seed)
    drift = ALRNN(
        rng.uniform(0.1, 0.6, 2),
        0.5 * rng.standard_normal((2, 2)),
        0.2 * rng.standard_normal(2),
        rng.standard_normal((2, 1)),
        gated,
    )
    model = PALRNN(drift, 0.5, 0.4, gate_std)
    return model, model.sample([0.3], steps, seed=1).observations


def runs(model, x, target, **budget):
    return [observed_information(model, x, target=target, seed=seed, **budget) for seed in range(RUNS)]


def discrepancy(estimates, truth):
    """Return the largest error of the mean over runs in standard errors, and the largest standard error."""
    values = np.array(estimates)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    # rounding stands in where an entry does not vary
    return (np.abs(values.mean(axis=0) - truth) / (error + 1e-9)).max(), error.max() / np.abs(truth).max()


# five standard errors: about 40 entries, each with a Student-t of 15 degrees of freedom, fail by chance once
# in 150
LIMIT = 5.0


@pytest.fixture(scope="module")
def linear():
    model, x = small_model(0, steps=8)
    return model, x, derivatives(linear_log_evidence, model, x)


@pytest.fixture(scope="module")
def switching():
    model, x = small_model(1)
    return model, x, derivatives(grid_log_evidence, model, x)


@pytest.fixture(scope="module")
def switching_runs(switching):
    model, x, _ = switching
    return runs(model, x, "exact", particles=2000, paths=1000, states_per_path=4)


def test_without_gates_louis_gives_the_hessian_of_the_kalman_likelihood(linear):
    model, x, (value, gradient, information) = linear
    found = runs(model, x, "paper", particles=2, paths=128, states_per_path=32)
    assert found[0].filtered.log_evidence == pytest.approx(value, rel=1e-9)
    worst, precision = discrepancy([o.observed for o in found], information)
    assert worst < LIMIT
    assert precision < 0.02
    assert discrepancy([o.score for o in found], gradient)[0] < LIMIT


def test_the_exact_target_gives_the_hessian_of_the_exact_evidence(switching, switching_runs):
    _, _, (_, _, information) = switching
    worst, precision = discrepancy([o.observed for o in switching_runs], information)
    assert worst < LIMIT
    assert precision < 0.02


def test_the_mean_score_is_the_gradient_of_the_exact_evidence(switching, switching_runs):
    _, _, (_, gradient, _) = switching
    worst, precision = discrepancy([o.score for o in switching_runs], gradient)
    assert worst < LIMIT
    assert precision < 0.05


def test_the_papers_target_is_another_one(switching):
    model, x, (_, _, information) = switching
    found = runs(model, x, "paper", particles=500, paths=500, states_per_path=4)
    # the filter that ignores what a gate says about its state has its own, different curvature
    assert discrepancy([o.observed for o in found], information)[0] > 10 * LIMIT


@pytest.mark.slow
def test_the_exact_target_gives_the_hessian_with_two_gates():
    model, x = small_model(2)
    _, gradient, information = derivatives(grid_log_evidence, model, x)
    found = runs(model, x, "exact", particles=4000, paths=4000, states_per_path=4)
    assert discrepancy([o.observed for o in found], information)[0] < LIMIT
    assert discrepancy([o.score for o in found], gradient)[0] < LIMIT


def test_standard_errors_tell_the_spread_between_runs(linear):
    # without gates the filter is exact, so that smoothing draws are all the noise there is
    model, x, _ = linear
    found = runs(model, x, "paper", particles=2, paths=64, states_per_path=4)
    for name in ("complete", "missing", "observed"):
        spread = np.std([getattr(o, f"trace_{name}") for o in found], ddof=1)
        claimed = np.mean([o.standard_errors[name] for o in found])
        # the deviation of 16 values is itself known to 18%
        assert 0.5 < claimed / spread < 2.0


@pytest.mark.parametrize("target", ["paper", "exact"])
def test_known_gates_leave_nothing_missing_to_switching(target):
    # the gated unit stays near 5, fifty deviations above the boundary, and the gate is all but hard
    drift = ALRNN([0.2, 0.2], [[0.5, 0.1], [0.0, 0.1]], [0.0, 3.5], [[1.0], [10.0]], 1)
    model = PALRNN(drift, 0.1, 0.1, 1e-3)
    x = model.sample([0.5], 8, seed=2).observations
    found = observed_information(model, x, particles=64, paths=64, states_per_path=32, target=target)
    # the entropy of weights that sum to one up to rounding
    assert abs(found.code_entropy) < 1e-12
    assert np.abs(found.missing_switching).max() < 1e-12 * np.abs(found.missing).max()
    assert found.trace_missing_state == pytest.approx(found.trace_missing, rel=1e-12)


def test_ambiguous_gates_are_missing_to_switching():
    # the observed unit follows the hidden gated one, which hovers at the boundary with a steep weight
    drift = ALRNN([0.0, 0.0], [[0.0, 3.0], [0.0, 0.0]], [0.0, 0.0], [[1.0], [0.0]], 1)
    model = PALRNN(drift, 0.3, 0.3, 0.5)
    x = model.sample([0.5], 20, seed=2).observations
    found = observed_information(model, x, particles=512, paths=512, states_per_path=16)
    assert found.code_entropy > 0.5
    assert found.trace_missing_switching > 10 * found.standard_errors["missing_switching"]


def test_the_estimate_is_that_of_the_smoothed_samples():
    model, x = small_model(1, steps=12)
    found = observed_information(model, x, particles=32, paths=6, states_per_path=3, seed=5)
    samples = smooth(rbpf(model, x, particles=32, seed=5), paths=6, states_per_path=3, seed=5)
    terms = louis_terms(model, samples.codes, samples.states)
    assert np.array_equal(found.scores, terms.scores)
    assert np.array_equal(found.observed, terms.observed)
    assert np.array_equal(found.distinct, samples.distinct)
    assert found.steps == 12


def test_the_same_seed_gives_the_same_estimate_and_another_does_not():
    model, x = small_model(1, steps=12)
    one, two, other = (observed_information(model, x, particles=32, paths=30, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.observed, two.observed)
    assert not np.array_equal(one.observed, other.observed)


def test_many_samples_are_drawn_in_batches_of_bounded_size(monkeypatch):
    model, x = small_model(1, steps=12)
    whole = observed_information(model, x, particles=64, paths=400, states_per_path=4)
    monkeypatch.setattr("palrnn.geometry.observed._BATCH", 50 * 4 * 12 * 2)
    seen = []
    parts = observed_information(
        model,
        x,
        particles=64,
        paths=400,
        states_per_path=4,
        progress=lambda done, total, _: seen.append(done),
    )
    assert seen == list(range(50, 401, 50))
    assert parts.scores.shape == whole.scores.shape
    # other draws of the same law
    error = np.hypot(parts.standard_errors["observed"], whole.standard_errors["observed"])
    assert abs(parts.trace_observed - whole.trace_observed) < 4 * error


def test_what_was_not_observed_leaves_less_information():
    model, x = small_model(1, steps=12)
    gaps = x.copy()
    gaps[4:9] = np.nan
    whole, part = (
        observed_information(model, y, particles=64, paths=256, states_per_path=8) for y in (x, gaps)
    )
    # more of the state is unknown, so a larger share of the complete information is missing
    error = np.hypot(whole.standard_errors["mir"], part.standard_errors["mir"])
    assert part.mir > whole.mir + 3 * error


def test_too_few_samples_give_a_warning_that_says_how_many_it_takes():
    model, x = small_model(1, steps=30)
    with pytest.warns(IndefiniteInformationWarning, match=r"3 samples cannot .* it takes at least \d+"):
        few = observed_information(model, x, particles=32, paths=3)
    assert few.needed_samples > 3
    assert np.linalg.eigvalsh(few.observed).min() < 0


def test_a_warning_says_when_more_is_missing_than_there_is():
    # an untrained model, far from the data and sure of itself: its scores vary more than its information
    model = PALRNN(initial_alrnn(6, 1, 2), 0.1, 0.1, 0.1)
    x = np.random.default_rng(0).standard_normal((30, 1))
    with pytest.warns(IndefiniteInformationWarning, match="may not be concave"):
        observed_information(model, x, particles=64, paths=8)


def test_the_summary_can_be_read():
    model, x = small_model(1, steps=12)
    found = observed_information(model, x, particles=32, paths=40, states_per_path=4)
    for word in ("MIR", "switching", "bits", "ESS", "+-"):
        assert word in repr(found)
    assert 0 <= found.code_entropy <= 5
    assert 1 <= found.ess <= 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paths": 1}, "paths must be >= 2"),
        ({"states_per_path": 0}, "states_per_path must be >= 1"),
        ({"target": "other"}, "target: input should be 'paper' or 'exact'"),
        ({"model": "net"}, "model must be a PALRNN"),
    ],
)
def test_wrong_settings_are_named(change, message):
    model, x = small_model(1)
    with pytest.raises(ValueError, match=message):
        observed_information(**({"model": model, "x": x} | change))
