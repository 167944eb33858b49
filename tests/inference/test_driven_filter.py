"""Filter, smoother and forecasts of driven models, z' = F(z) + C s, against answers that are known."""

import numpy as np
import pytest
from inference.test_reference import TARGETS, twins, with_gaps
from oracles.dense_paths import States, enumerated
from oracles.shallow_family import covariance, random_shallow
from oracles.small_models import gated_model
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from palrnn import (
    PALRNN,
    Noise,
    ObservationMap,
    Stepper,
    path_posterior,
    rbpf,
    smooth,
    windowed_evidence,
)
from palrnn.inference.config import SampleConfig
from palrnn.inference.smoothing import drawn_paths
from palrnn.model.inputs import driven

# gated, observed, latent
SIZES = [(0, 1, 1), (2, 2, 2), (3, 2, 6), (0, 2, 11), (10, 3, 30)]


def stimulus(times, inputs=2, seed=8):
    """Inputs that move the state by about as much as it moves by itself, and never repeat."""
    return np.random.default_rng(seed).standard_normal((times, inputs))


def with_inputs(model, inputs=2, seed=7):
    """The same PAL-RNN, driven by some inputs."""
    C = np.random.default_rng(seed).standard_normal((model.drift.latent_dim, inputs))
    return model.with_drift(driven(model.drift, C))


def drawn(model, s, seed=5):
    return model.sample(np.full(model.drift.observed_dim, 0.3), len(s), seed=seed, inputs=s).observations


def driven_twins(size, gate_std=0.5):
    return tuple(with_inputs(model) for model in twins(*size, gate_std))


def driven_shallow(seed=1, gated=2):
    """A driven shallow PLRNN with full noises and an observation map, which only the plain engine runs."""
    rng, drift = np.random.default_rng(seed), random_shallow(2, 1, gated, seed=seed)
    process, initial = (Noise.full(covariance(2, scale, rng)) for scale in (0.5, 0.7))
    reads = ObservationMap(rng.standard_normal((1, 2)), 0.5 * rng.standard_normal(1))
    return with_inputs(PALRNN(drift, process, 0.4, 0.4, initial, reads))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", SIZES)
def test_the_fast_filter_and_smoother_are_the_plain_ones_draw_by_draw(size, target):
    fast, plain = driven_twins(size)
    s = stimulus(30)
    x = with_gaps(drawn(fast, s))
    one, other = (rbpf(m, x, inputs=s, particles=37, target=target, ess_threshold=0.7) for m in (fast, plain))
    for name in ("code_words", "ancestors", "resampled"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    # thirty steps of rounding
    for name in ("increments", "gate_probability", "mean", "log_weights"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-10, err_msg=name)
    for method in ("ancestors", None):
        drawings = [
            drawn_paths(f, SampleConfig(paths=4, states_per_path=2, method=method)) for f in (one, other)
        ]
        np.testing.assert_array_equal(drawings[0].codes, drawings[1].codes)
        for name in ("gate_inputs", "states"):
            values = [getattr(drawing, name) for drawing in drawings]
            np.testing.assert_allclose(*values, atol=1e-10, err_msg=name)


def test_inputs_that_do_nothing_leave_every_bit_as_it_was():
    model = gated_model(3, observed=2, latent=6, seed=4)
    # zeros for C: the states are pushed by nothing
    still = model.with_drift(driven(model.drift, np.zeros((6, 2))))
    x = with_gaps(drawn(with_inputs(model), stimulus(30)))
    one, other = rbpf(model, x, target="exact"), rbpf(still, x, inputs=stimulus(30), target="exact")
    np.testing.assert_array_equal(one.increments, other.increments)
    np.testing.assert_array_equal(one.mean, other.mean)


def test_constant_inputs_are_a_bias():
    model = gated_model(3, observed=2, latent=6, seed=4)
    moved = with_inputs(model)
    s = np.tile([0.3, -0.2], (30, 1))
    drift = model.drift
    theta = drift.theta.copy()
    theta[-6:] += moved.drift.C @ s[0]
    same = model.with_drift(drift.with_theta(theta))
    x = with_gaps(drawn(moved, s))
    one, other = rbpf(moved, x, inputs=s), rbpf(same, x)
    # a bias that was added up in another order
    np.testing.assert_allclose(one.increments, other.increments, atol=1e-11)


@pytest.mark.parametrize("family", ["alrnn", "alrnn, full noise", "shallow"])
@pytest.mark.parametrize("gaps", [True, False], ids=["gaps", "whole"])
@pytest.mark.parametrize("driving", [True, False], ids=["inputs", "no inputs"])
def test_the_evidence_of_a_linear_model_equals_statsmodels(family, gaps, driving):
    """P = 0, or gates that are so far from their threshold that their path is fixed."""
    rng = np.random.default_rng(3)
    if family == "shallow":
        drift = random_shallow(4, 2, 3, seed=2)
        theta = drift.theta.copy()
        theta[-3:] = 100.0 * np.array([1.0, -1.0, 1.0])  # h2
        theta[4:16] *= 1e-3  # W1, so that open hidden units do not throw the state far away
        model = PALRNN(drift.with_theta(theta), 0.3, 0.2, 0.1)
        code = np.array([True, False, True])
    else:
        full = family == "alrnn, full noise"
        drift = gated_model(0, observed=2, latent=4, seed=2).drift
        noise = [Noise.full(covariance(dim, 0.5, rng)) for dim in (4, 2)] if full else [0.3, 0.2]
        model, code = PALRNN(drift, *noise, 0.1), np.zeros(0, dtype=bool)
    model = with_inputs(model) if driving else model
    s = stimulus(60) if driving else None
    x = drawn(model, s) if driving else model.sample(np.full(2, 0.3), 60, seed=5).observations
    x = with_gaps(x) if gaps else x
    theirs = kalman_by_statsmodels(model, x, s, code)
    # both run recursions in float64; every particle has the one path there is, but under the exact target it
    # is also conditioned on the inputs of its gates, where there are any
    for target in TARGETS[: 1 if len(code) else 2]:
        found = rbpf(model, x, inputs=s, particles=3, target=target).log_evidence
        assert found == pytest.approx(theirs.llf, abs=1e-8)
    ours = path_posterior(model, x, np.tile(code, (59, 1)), inputs=s)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    np.testing.assert_allclose(ours.mean[1:], theirs.smoothed_state.T, atol=1e-9)
    np.testing.assert_allclose(ours.cov[1:], theirs.smoothed_state_cov.transpose(2, 0, 1), atol=1e-9)


def kalman_by_statsmodels(model, x, s, code):
    (J, b), M, N = model.drift.affine(code), model.drift.latent_dim, model.drift.observed_dim
    library = KalmanSmoother(k_endog=N, k_states=M, k_posdef=M)
    library.bind(np.ascontiguousarray(x[1:]))
    library["design"], library["obs_intercept"] = model.observation_map.B, model.observation_map.d[:, None]
    library["transition"], library["selection"] = J, np.eye(M)
    pushes = np.zeros((len(x), M)) if s is None else s @ model.drift.C.T
    # theirs begins at x[1]: the step into it is part of the start, the last one leads nowhere
    library["state_intercept"] = b[:, None] + pushes[1:].T
    library["obs_cov"], library["state_cov"] = model.observation_covariance, model.process_covariance
    first = J @ model.initial_covariance @ J.T + model.process_covariance
    library.initialize_known(J @ model.drift.embed(x[0]) + b + pushes[0], first)
    return library.smooth()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_evidence_and_smoothed_gates_with_gaps_and_inputs_equal_enumeration(family, target):
    model = with_inputs(gated_model(1, seed=4)) if family == "alrnn" else driven_shallow()
    s = stimulus(4)
    x = drawn(model, s)
    x[2] = np.nan
    paths = enumerated(model, x, target, s @ model.drift.C.T)
    runs = [rbpf(model, x, inputs=s, particles=64, target=target, seed=seed) for seed in range(200)]
    ratios = np.exp([run.log_evidence for run in runs]) / paths.evidence
    # four standard errors of a Monte Carlo mean, and they are small enough to see a wrong step
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))
    assert ratios.std() / np.sqrt(len(ratios)) < 0.01
    still = enumerated(model, x, target)
    assert abs(still.evidence / paths.evidence - 1) > 0.1
    filtered = rbpf(model, x, inputs=s, particles=20_000, target=target, resampling="systematic")
    codes = smooth(filtered, paths=10_000, seed=1, method="ancestors").codes
    # at most 0.5 / sqrt(10,000) and 0.5 / sqrt(effective 10,000): four of both together
    np.testing.assert_allclose(codes.mean(axis=0), paths.gate_marginals, atol=0.028)
    if target == "exact":
        chain = smooth(rbpf(model, x, inputs=s, particles=100, target=target), paths=400, sweeps=1).codes
        # 20 stretches of 20 paths, over which the chain forgets, count as independent; few numbers, 4 errors
        means = chain.reshape(20, 20, *chain.shape[1:]).mean(axis=1)
        error = np.maximum(means.std(axis=0, ddof=1) / np.sqrt(len(means)), 1e-3)
        np.testing.assert_allclose((means.mean(axis=0) - paths.gate_marginals) / error, 0.0, atol=4.0)


@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_a_path_of_a_driven_model_has_its_exact_posterior(family):
    model = with_inputs(gated_model(2, seed=4)) if family == "alrnn" else driven_shallow(gated=2)
    s = stimulus(22)
    x = with_gaps(drawn(model, s))
    codes = np.random.default_rng(0).random((21, 2)) < 0.5
    ours, exact = path_posterior(model, x, codes, inputs=s), States(model, x, codes, s @ model.drift.C.T)
    mean, cov = exact.given(22)
    # one normal vector of all states, conditioned once, which costs a few digits
    assert ours.log_likelihood == pytest.approx(exact.log_density, abs=1e-9)
    np.testing.assert_allclose(ours.mean.ravel(), mean, atol=1e-9)
    dim = model.drift.latent_dim
    for t in range(22):
        now = slice(dim * t, dim * t + dim)
        np.testing.assert_allclose(ours.cov[t], cov[now, now], atol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_row_by_row_is_the_whole_series_to_the_last_bit(family, target):
    model = (
        with_inputs(gated_model(3, observed=2, latent=6, seed=4)) if family == "alrnn" else driven_shallow()
    )
    s = stimulus(40)
    x = with_gaps(drawn(model, s))
    how = {"particles": 33, "seed": 5, "target": target, "ess_threshold": 0.99}
    whole = rbpf(model, x, inputs=s, **how)
    assert whole.resampled.sum() > 2
    stepper = Stepper(model, x[0], inputs=s[0], **how)
    for t in range(len(x) - 1):
        assert stepper.update(x[t + 1], inputs=s[t + 1]) == whole.increments[t]
    # sums in another order
    np.testing.assert_allclose(stepper.mean, whole.mean[-1], atol=1e-12)


def test_forecasts_of_a_driven_linear_model_have_its_moments():
    model = with_inputs(gated_model(0, observed=2, latent=3, seed=2))
    s, ahead = stimulus(30), stimulus(5, seed=3)
    x = drawn(model, s)
    stepper = Stepper(model, x[0], inputs=s[0], particles=1)
    for row, given in zip(x[1:], s[1:], strict=True):
        stepper.update(row, inputs=given)
    found = stepper.forecast(5, inputs=ahead, paths=4000, seed=1)
    (J, h), C, mean = model.drift.affine(np.zeros(0, dtype=bool)), model.drift.C, stepper.mean
    # the first step is driven by the inputs of the latest row
    for t, given in enumerate([s[-1], *ahead[:-1]]):
        mean = J @ mean + h + C @ given
        # four standard errors
        error = found.paths[:, t].std(axis=0) / np.sqrt(4000)
        assert (np.abs(found.mean[t] - mean[:2]) < 4 * error).all()
    other = stepper.forecast(5, inputs=np.vstack([ahead[:-1], [9.0, 9.0]]), paths=4000, seed=1)
    np.testing.assert_array_equal(other.paths, found.paths)


def test_windows_take_the_inputs_of_their_rows():
    model = with_inputs(gated_model(1, observed=2, seed=4))
    trials = [stimulus(23), stimulus(12, seed=2)]
    series = [drawn(model, s) for s in trials]
    series[0][10, 0] = np.nan
    found = windowed_evidence(model, series, 5, inputs=trials, particles=4000)
    starts = [(0, 0), (0, 5), (0, 11), (0, 16), (1, 0), (1, 5)]
    alone = [
        rbpf(model, series[k][t : t + 6], inputs=trials[k][t : t + 6], particles=4000, seed=3).log_evidence
        for k, t in starts
    ]
    # two estimates with 4,000 particles each, of other seeds
    np.testing.assert_allclose(found.per_window, np.array(alone) / 10, atol=0.01)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, "inputs must be given"),
        (np.zeros((29, 2)), r"inputs must be \(30, 2\)"),
        (np.zeros((30, 3)), r"inputs must be \(30, 2\)"),
        (np.full((30, 2), np.nan), "inputs must be finite"),
    ],
)
def test_wrong_inputs_are_named(inputs, message):
    model = with_inputs(gated_model(1, seed=4))
    x = drawn(model, stimulus(30))
    with pytest.raises(ValueError, match=message):
        rbpf(model, x, inputs=inputs)
    with pytest.raises(ValueError, match=message):
        path_posterior(model, x, np.zeros((29, 1)), inputs=inputs)
    with pytest.raises(ValueError, match="inputs"):
        windowed_evidence(model, x, 10, inputs=inputs)


def test_inputs_of_a_model_that_takes_none_and_rows_without_theirs_are_named():
    still = gated_model(1, seed=4)
    model = with_inputs(still)
    x = drawn(model, stimulus(30))
    with pytest.raises(ValueError, match="inputs must be None"):
        rbpf(still, x, inputs=stimulus(30))
    with pytest.raises(ValueError, match="inputs must be None"):
        Stepper(still, x[0], inputs=[1.0, 2.0])
    with pytest.raises(ValueError, match="inputs must be given"):
        Stepper(model, x[0])
    stepper = Stepper(model, x[0], inputs=[0.1, 0.2])
    with pytest.raises(ValueError, match="inputs must be given"):
        stepper.update(x[1])
    with pytest.raises(ValueError, match=r"inputs must have shape \(2,\)"):
        stepper.update(x[1], inputs=[1.0])
    with pytest.raises(ValueError, match=r"inputs must be \(4, 2\)"):
        stepper.forecast(4, inputs=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="inputs must be given"):
        stepper.forecast(4)
