"""The observed information, exact given the gates, against the evidence of small models."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.dense_paths import enumerated
from oracles.grid_evidence import derivatives, grid_log_evidence, linear_log_evidence

from palrnn.geometry import InformationConfig, observed_information, path_information
from palrnn.inference import FewPathsWarning
from palrnn.model import ALRNN, PALRNN

RUNS = 12


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


def discrepancy(estimates, truth):
    """Return the largest error of the mean over runs in standard errors, and the largest standard error."""
    values = np.array(estimates)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    # rounding stands in where an entry does not vary
    return (np.abs(values.mean(axis=0) - truth) / (error + 1e-9)).max(), error.max() / np.abs(truth).max()


# five standard errors: about 40 entries, each with a Student-t of 11 degrees of freedom, fail by chance once
# in 60
LIMIT = 5.0


def test_without_gates_the_hessian_of_the_kalman_likelihood_is_exact():
    model, x = small_model(0, steps=8)
    value, gradient, information = derivatives(linear_log_evidence, model, x)
    found = observed_information(model, x)
    assert found.log_evidence == pytest.approx(value, rel=1e-9)
    # the reference takes differences of a gradient, with an error of about 1e-9
    np.testing.assert_allclose(found.observed, information, atol=1e-7 * np.abs(information).max())
    np.testing.assert_allclose(found.score, gradient, atol=1e-7 * np.abs(gradient).max())
    assert len(found.filtered) == 1
    assert set(found.standard_errors.values()) == {0.0}
    assert found.trace_missing_switching == 0.0


@pytest.fixture(scope="module")
def switching():
    model, x = small_model(1)
    budget = {"target": "exact", "method": "ancestors", "particles": 300, "paths": 60, "state_paths": 12}
    found = [observed_information(model, x, seed=seed, **budget) for seed in range(RUNS)]
    return found, derivatives(grid_log_evidence, model, x)


def test_the_exact_target_gives_the_hessian_of_the_exact_evidence(switching):
    found, (_, _, information) = switching
    worst, precision = discrepancy([o.observed for o in found], information)
    assert worst < LIMIT
    assert precision < 0.025


def test_the_mean_score_is_the_gradient_of_the_exact_evidence(switching):
    found, (_, gradient, _) = switching
    worst, precision = discrepancy([o.score for o in found], gradient)
    assert worst < LIMIT
    assert precision < 0.05


def test_standard_errors_tell_the_spread_between_runs(switching):
    found, _ = switching
    for name in ("complete", "missing", "observed", "missing_switching", "mir"):
        spread = np.std([o.traces[name] for o in found], ddof=1)
        claimed = np.sqrt(np.mean([o.standard_errors[name] ** 2 for o in found]))
        # 12 runs know their spread to 21 %, and the mean of 12 errors from 4 passes is known to 12 %
        assert 0.5 < claimed / spread < 2.0


def test_several_passes_make_up_for_what_paths_have_in_common():
    # scores made by hand: what the paths of a pass have in common has variance 4, what they have not, 9
    rng, (model, x) = np.random.default_rng(0), small_model(1)
    template = observed_information(model, x, particles=8, passes=3, paths=5)
    size, found = template.parameters, []
    for _ in range(4000):
        parts = tuple(
            replace(part, scores=2.0 * rng.standard_normal((1, size)) + 3.0 * rng.standard_normal((5, size)))
            for part in template.passes
        )
        pooled, alone = (replace(template, passes=some) for some in (parts, parts[:1]))
        found.append([np.trace(information.missing_switching) for information in (pooled, alone)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    # four standard errors of the mean
    assert np.all(np.abs(mean - size * np.array([13.0, 9.0])) < 4 * error)


def test_the_papers_recipe_is_the_mixture_of_all_paths():
    model, x = small_model(1, steps=6)
    paths = enumerated(model, x, "paper")
    parts = [path_information(model, x, codes) for codes in paths.codes]
    weights = paths.joint / paths.evidence
    scores = np.stack([part.score for part in parts])
    mean = weights @ scores
    spread = (scores - mean) * np.sqrt(weights)[:, None]
    recipe = np.tensordot(weights, np.stack([part.observed for part in parts]), axes=1) - spread.T @ spread
    found = [
        observed_information(model, x, target="paper", seed=seed, particles=300, paths=80, state_paths=16)
        for seed in range(RUNS)
    ]
    worst, precision = discrepancy([o.observed for o in found], recipe)
    assert worst < LIMIT
    assert precision < 0.02
    assert discrepancy([o.score for o in found], mean)[0] < LIMIT


def test_the_papers_target_is_another_one(switching):
    model, x = small_model(1)
    _, (_, _, information) = switching
    budget = {"target": "paper", "particles": 500, "paths": 200}
    found = [observed_information(model, x, seed=seed, **budget) for seed in range(8)]
    # the filter that ignores what a gate says about its state has its own, different curvature
    assert discrepancy([o.observed for o in found], information)[0] > 5 * LIMIT


def test_known_gates_leave_nothing_missing_to_switching():
    # the gated unit stays near 5, fifty deviations above the boundary, and the gate is all but hard
    drift = ALRNN([0.2, 0.2], [[0.5, 0.1], [0.0, 0.1]], [0.0, 3.5], [[1.0], [10.0]], 1)
    model = PALRNN(drift, 0.1, 0.1, 1e-3)
    x = model.sample([0.5], 8, seed=2).observations
    found = observed_information(model, x, particles=64, target="paper")
    assert abs(found.code_entropy) < 1e-12
    # all paths are one path, up to the rounding of a mean
    assert found.trace_missing_switching < 1e-20 * found.trace_missing


def test_ambiguous_gates_are_missing_to_switching():
    # the observed unit follows the hidden gated one, which hovers at the boundary with a steep weight
    drift = ALRNN([0.0, 0.0], [[0.0, 3.0], [0.0, 0.0]], [0.0, 0.0], [[1.0], [0.0]], 1)
    model = PALRNN(drift, 0.3, 0.3, 0.5)
    x = model.sample([0.5], 20, seed=2).observations
    found = observed_information(model, x, particles=512, paths=64)
    assert found.code_entropy > 0.5
    assert found.trace_missing_switching > 5 * found.standard_errors["missing_switching"]


@pytest.mark.parametrize("target", ["paper", "exact"])
def test_matrices_traces_and_products_agree(target):
    model, x = small_model(1, steps=12)
    x[5:7] = np.nan
    found, again = (
        observed_information(model, x, target=target, particles=64, paths=8, state_paths=3) for _ in range(2)
    )
    # traces by pairs of times first, then by the matrices
    for name in ("complete", "missing", "observed", "missing_state", "missing_switching"):
        assert found.traces[name] == pytest.approx(np.trace(getattr(again, name)), rel=1e-9)
    again.build()
    assert again.traces["observed"] == pytest.approx(found.traces["observed"], rel=1e-9)
    vectors = np.random.default_rng(0).standard_normal((found.parameters, 2))
    scale = np.abs(again.observed).max()
    np.testing.assert_allclose(found @ vectors, again.observed @ vectors, atol=1e-9 * scale)
    values, basis = found.leading(3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(again.observed)[::-1][:3], rtol=1e-8)
    np.testing.assert_allclose(again.observed @ basis, basis * values, atol=1e-7 * scale)
    assert found.missing_dimensions == pytest.approx(
        np.trace(np.linalg.pinv(again.complete, rcond=1e-9, hermitian=True) @ again.missing), rel=1e-6
    )
    assert found.informed_dimensions == found.parameters - 1
    with pytest.raises(ValueError, match="v must be"):
        found @ np.ones(3)


def test_large_paths_are_made_again_instead_of_kept(monkeypatch):
    model, x = small_model(1, steps=12)
    budget = {"particles": 32, "paths": 4, "passes": 2}
    kept = observed_information(model, x, **budget)
    monkeypatch.setattr("palrnn.geometry.exact._KEPT", 0)
    made = observed_information(model, x, **budget)
    vector = np.ones(kept.parameters)
    np.testing.assert_array_equal(kept @ vector, made @ vector)
    assert made.passes[0].kept_paths is None


def test_pairs_far_apart_can_be_left_out_of_traces():
    model, x = small_model(1, steps=60)
    budget = {"particles": 32, "paths": 4, "passes": 2}
    whole, part = (observed_information(model, x, lags=lags, **budget) for lags in (None, 20))
    assert part.trace_observed != whole.trace_observed
    assert abs(part.trace_observed - whole.trace_observed) <= part.left_out
    assert whole.left_out == 0.0


def test_the_same_seed_gives_the_same_estimate_and_another_does_not():
    model, x = small_model(1, steps=12)
    one, two, other = (observed_information(model, x, particles=32, paths=6, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.observed, two.observed)
    assert not np.array_equal(one.observed, other.observed)


def test_what_was_not_observed_leaves_less_information():
    model, x = small_model(1, steps=12)
    gaps = x.copy()
    gaps[4:9] = np.nan
    whole, part = (observed_information(model, y, particles=64, paths=64, passes=6) for y in (x, gaps))
    # more of the state is unknown, so a larger share of the complete information is missing
    assert part.mir > whole.mir + 3 * np.hypot(whole.standard_errors["mir"], part.standard_errors["mir"])


def test_few_particles_at_the_start_of_all_paths_give_a_warning():
    model, x = small_model(1, steps=60)
    with pytest.warns(FewPathsWarning, match="pass through . different particles"):
        observed_information(model, x, method="ancestors", particles=4, passes=2, paths=32)


def test_the_summary_can_be_read():
    model, x = small_model(1, steps=12)
    found = observed_information(model, x, particles=32, paths=8)
    for word in ("states='exact'", "4 passes x 8 paths", "MIR", "switching", "bits", "ESS", "+-"):
        assert word in repr(found)
    assert 0 <= found.code_entropy <= 5
    assert 1 <= found.ess <= 32


def test_settings_come_as_a_config_as_keywords_or_as_both():
    model, x = small_model(1)
    config = InformationConfig(particles=16, paths=4, passes=2)
    one = observed_information(model, x, config, seed=3)
    two = observed_information(model, x, particles=16, paths=4, passes=2, seed=3)
    assert one.config == two.config
    assert one.trace_observed == two.trace_observed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paths": 1}, "paths: .* greater than or equal to 2"),
        ({"passes": 0}, "passes: .* greater than or equal to 1"),
        ({"states": "guessed"}, "states: .*'exact' or 'sampled'"),
        ({"target": "other"}, "target: "),
        ({"model": "net"}, "model must be a PALRNN"),
        ({"ridge": 1.0}, "ridge is not a known setting"),
    ],
)
def test_wrong_settings_are_named(change, message):
    model, x = small_model(1)
    with pytest.raises(ValueError, match=message):
        observed_information(**({"model": model, "x": x} | change))
