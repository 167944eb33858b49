"""Exponents of the flow that a model samples, beside those of the map that it is."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.flows import Field, lorenz63_field, rk4

from palrnn import (
    ALRNN,
    PALRNN,
    Standardizer,
    TrainConfig,
    lorenz63,
    lyapunov_spectrum,
    quantities_of_interest,
    train,
)
from palrnn.coverage.truths import Switching
from palrnn.data import make_system
from palrnn.geometry import invariant_error_bars, model_bars
from palrnn.invariants import DivergenceError, samples_flow, scorecard
from palrnn.invariants.kernels import lyapunov as kernels


def thomas_field(z: np.ndarray) -> np.ndarray:
    """Thomas (1999) with b = 0.18: x' = sin y - b x, and so on around."""
    return np.sin(np.roll(z, -1, axis=-1)) - 0.18 * z


def _slopes(field: Field, states: np.ndarray, dt: float) -> np.ndarray:
    """Return the Jacobians (T, D, D) of one step at ``states (T, D)``, by central differences."""
    dim, eps = states.shape[1], 1e-6
    parts = [
        (rk4(field, states + eps * e, dt) - rk4(field, states - eps * e, dt)) / (2 * eps) for e in np.eye(dim)
    ]
    return np.stack(parts, axis=-1)


def _path(field: Field, start: list[float], dt: float, steps: int) -> np.ndarray:
    states = [np.array(start)]
    for _ in range(2000 + steps):
        states.append(rk4(field, states[-1], dt))
    return np.array(states)[2000:]


def _exponents(states: np.ndarray, slopes: np.ndarray, dt: float, flow: bool) -> np.ndarray:
    """Return all exponents along a path by the kernels that models go through, largest first."""
    V, sums, speed = np.eye(states.shape[1]), np.zeros(states.shape[1]), np.zeros(1)
    for t in range(2, len(states) - 3):
        V = np.ascontiguousarray(V @ slopes[t].T)
        if flow:
            kernels.follow(V, speed, states[t - 1 : t + 4])
        kernels.orthonormalize(V, sums)
    return np.sort(sums / ((len(states) - 5) * dt))[::-1]


def _directions(states: np.ndarray) -> np.ndarray:
    """Return where a path goes at each state but two at both ends: the slope of a quartic through five."""
    times = np.arange(-2.0, 3.0)
    at_zero = np.linalg.inv(np.vander(times, increasing=True))[1]
    v = sum(at_zero[k] * states[k : len(states) - 4 + k] for k in range(5))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _projected(states: np.ndarray, slopes: np.ndarray, dt: float) -> np.ndarray:
    """Return the exponents across the path once more: projections, and QR by the library."""
    return _across(slopes[2:], _directions(states), dt)


def _across(slopes: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """Return the exponents of the products of ``slopes`` across the directions ``v (T, D)`` of the path."""
    Q, sums = np.linalg.qr(np.column_stack([v[0], np.eye(len(v[0]))[:, 1:]]))[0][:, 1:], 0.0
    for t in range(1, len(v)):
        V = slopes[t - 1] @ Q
        Q, R = np.linalg.qr(V - np.outer(v[t], v[t] @ V))
        sums = sums + np.log(np.abs(np.diag(R)))
    return sums / ((len(v) - 1) * dt)


def test_of_a_smooth_flow_they_are_its_exponents():
    dt, steps = 0.01, 60_000
    states = _path(lorenz63_field, [1.0, 2.0, 20.0], dt, steps)
    slopes = _slopes(lorenz63_field, states[:-1], dt)
    plain, flow = (_exponents(states, slopes, dt, flowing) for flowing in (False, True))
    # the same path: what differs is how well v_{t+1} ~ J v_t holds at this step, to its fourth power
    np.testing.assert_allclose(flow, plain, atol=0.005)
    # Sparrow (1982): 0.9056; the error of one run of 600 units of time is about 0.01
    assert abs(flow[0] - 0.9056) < 0.03
    # the speed neither grows nor shrinks in the long run: its logs change by less than 5 in 600
    assert abs(flow[1]) < 5 / 600
    np.testing.assert_allclose(flow[[0, 2]], _projected(states, slopes, dt), atol=0.005)


def test_where_a_flow_shears_coarse_samples_give_the_same_exponents():
    dt, steps = 0.5, 20_000
    states = _path(thomas_field, [1.1, 1.0, -0.1], dt, steps)
    slopes = _slopes(thomas_field, states[:-1], dt)
    plain, flow = (_exponents(states, slopes, dt, flowing) for flowing in (False, True))
    assert flow[0] == pytest.approx(plain[0], rel=0.03)
    # the direction by two states alone makes a fifth less of it
    chord = states[2:] - states[:-2]
    chord /= np.linalg.norm(chord, axis=1, keepdims=True)
    assert _across(slopes[1:], chord, dt)[0] < 0.9 * plain[0]


def test_noise_in_the_slopes_of_a_shear_makes_chaos_of_its_own_but_not_across_the_path():
    dt, steps = 0.1, 30_000
    states = _path(thomas_field, [1.1, 1.0, -0.1], dt, steps)
    slopes = _slopes(thomas_field, states[:-1], dt)
    rough = slopes + 0.02 * np.random.default_rng(0).standard_normal(slopes.shape)
    true = _exponents(states, slopes, dt, False)
    assert 0.02 < true[0] < 0.06
    assert abs(true[1]) < 0.002
    of_map, of_flow = (_exponents(states, rough, dt, flowing) for flowing in (False, True))
    # noise without a bias: the largest exponent of the map is off by more than a half, of the flow by a sixth
    assert of_map[0] > 1.5 * true[0]
    assert abs(of_flow[0] - true[0]) < 0.2 * true[0]


def test_of_a_linear_model_both_are_the_same():
    # differences of states are carried by J exactly, and turn to the directions that shrink least
    turn, rate = 0.1, 0.995
    J = np.zeros((3, 3))
    J[:2, :2] = rate * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    J[2, 2] = 0.5
    model = ALRNN(np.zeros(3), J, np.zeros(3), np.eye(3)[:, :2], 0)
    expected = np.log([rate, rate, 0.5])
    for flow in (False, True):
        found = lyapunov_spectrum(model, [1.0, 0.0], steps=2000, discard=50, dt=1.0, flow=flow)
        np.testing.assert_allclose(found.exponents, expected, atol=1e-6)
        # a speed that falls on and on is an exponent, not an error
        assert found.stderr.max() < 1e-3


def test_at_rest_there_is_no_path_and_all_directions_are_carried():
    J = np.diag([0.5, 0.4])
    model = ALRNN(np.zeros(2), J, np.array([0.1, 0.1]), np.eye(2), 0)
    found = lyapunov_spectrum(model, [3.0, 1.0], steps=500, discard=200, dt=1.0, flow=True)
    np.testing.assert_allclose(found.exponents, np.log([0.5, 0.4]), atol=1e-6)
    assert found.stderr.max() < 1e-3


@pytest.mark.parametrize("steps", [500, 3000])
def test_a_cycle_is_not_taken_for_chaos(steps):
    # the speed goes up and down along the cycle: where a run ends decides its growth, which is in the error
    model = Switching.drift
    states = model.rollout(np.array([0.3, 0.1, -0.2]), 2100).states[2000:]
    speeds = np.linalg.norm(8 * (states[3:-1] - states[1:-3]) - (states[4:] - states[:-4]), axis=1)
    most = np.ptp(np.log(speeds)) / (0.1 * steps)
    for start in states[:31]:
        found = lyapunov_spectrum(model, start, steps=steps, discard=100, dt=0.1, flow=True)
        assert abs(found.largest) <= 1.01 * most
        assert 0.5 * most < found.stderr[0] < 2 * most
        assert np.all(found.exponents[1:] < -0.5)


@pytest.fixture(scope="module")
def learned() -> tuple[ALRNN, Standardizer, np.ndarray]:
    x = lorenz63(12_000, seed=1)
    scale = Standardizer.fit(x)
    config = TrainConfig(latent_dim=20, gated=10, updates=2500, sequence_length=100)
    return train(scale.transform(x), config).model, scale, x


def test_a_learned_model_has_them_by_its_kernel_as_by_projection(learned):
    model, scale, x = learned
    start, steps, discard = scale.transform(x[4000]), 400, 100
    found = lyapunov_spectrum(model, start, steps=steps, discard=discard, dt=0.01, k=2, flow=True)
    states = [model.embed(start)]
    for _ in range(discard + steps + 4):
        z = states[-1]
        states.append(model.jacobian(z) @ z + model.h)
    states = np.array(states)
    v = _directions(states)
    # one direction across the path, from a random start; after 100 steps both are the one that grows most
    q, logs = np.random.default_rng(1).standard_normal(model.latent_dim), []
    for t in range(1, len(v)):
        q = model.jacobian(states[t + 1]) @ (q / np.linalg.norm(q))
        q -= v[t] * (v[t] @ q)
        logs.append(np.log(np.linalg.norm(q)))
    # the tangents begin at state 2, and are those of the states that a free run keeps
    assert np.mean(logs[discard - 2 : discard - 2 + steps]) / 0.01 == pytest.approx(found.largest, abs=0.02)


def test_a_learned_model_of_lorenz63_has_its_exponents(learned):
    model, scale, x = learned
    found = lyapunov_spectrum(model, scale.transform(x[4000]), steps=60_000, dt=0.01, k=2, flow=True)
    # a short training: which model comes of it depends on how a processor rounds (0.77 to 0.87 were seen)
    assert abs(found.largest - 0.9056) < 0.25
    assert abs(found.exponents[1]) < 0.01
    # one that is asked for alone is the largest, not that of the path
    assert lyapunov_spectrum(
        model, scale.transform(x[4000]), steps=60_000, dt=0.01, k=1, flow=True
    ).largest == pytest.approx(found.largest, abs=1e-9)


def test_the_score_card_of_a_flow_has_its_exponents_and_those_of_the_map(learned):
    model, scale, x = learned
    how = {"standardizer": scale, "steps": 2000, "long_steps": 1000, "pairs": 2}
    card = scorecard(model, x, dt=0.01, **how)
    run = card.hard
    assert card.flow
    assert run.lyapunov is not None
    assert run.map_lyapunov is not None
    # one is zero by itself, but for what the speed at the end of so short a run adds, which its error holds
    nearest = np.abs(run.lyapunov.exponents).argmin()
    assert abs(run.lyapunov.exponents[nearest]) < 3 * run.lyapunov.stderr[nearest]
    given = {"steps": 2000, "dt": 0.01, "k": 3}
    of_map = lyapunov_spectrum(model, scale.transform(x[0]), **given)
    of_flow = lyapunov_spectrum(model, scale.transform(x[0]), flow=True, **given)
    np.testing.assert_array_equal(run.map_lyapunov.exponents, of_map.exponents)
    np.testing.assert_array_equal(run.lyapunov.exponents, of_flow.exponents)
    assert f"of the map {of_map.largest:.3g}" in str(card.facts())
    assert card.to_dict()["hard"]["map_exponents"] == of_map.exponents.tolist()


def test_a_series_that_jumps_and_a_model_with_noise_have_those_of_the_map(learned):
    model, scale, x = learned
    jumps = np.random.default_rng(0).standard_normal((500, 3))
    start = scale.transform(x[0])
    assert samples_flow(model, x, start)
    assert not samples_flow(model, jumps)
    # noise of observation is not the model's; ten steps at once are too coarse to tell where the path goes
    noisy = x + 0.4 * x.std(axis=0) * np.random.default_rng(1).standard_normal(x.shape)
    assert samples_flow(model, noisy, start)
    assert not samples_flow(model, x[::10])
    assert not samples_flow(PALRNN(model, 0.1, 0.1, 0.1), x)
    spectra = quantities_of_interest(model, x, standardizer=scale, steps=500).lyapunov
    assert spectra is not None
    assert not spectra.flow


def _tent_sum(rate: float) -> ALRNN:
    """Return a chaotic map and a sum of what it gives that forgets slowly, y' = rate y + x / 10; y is seen.

    x' = 1 - 1.8 |x| of units y, x, relu(x).
    """
    W = np.zeros((3, 3))
    # |x| = 2 relu(x) - x, with relu(x) what the gated copy of x gives
    W[1, 1], W[1, 2] = 1.8, -3.6
    W[2, 1], W[2, 2] = 1.8, -3.6
    W[0, 1] = 0.1
    return ALRNN(np.array([rate, 0.0, 0.0]), W, np.array([0.0, 1.0, 1.0]), np.eye(3)[:, :1], 1)


@pytest.mark.parametrize("rate", [0.98, 0.99])
def test_sums_of_a_map_are_smooth_but_no_path(rate):
    model = _tent_sum(rate)
    y = model.rollout(np.array([0.0]), 8000).states[1000:, :1]
    near = np.corrcoef(y[1:, 0], y[:-1, 0])[0, 1]
    assert near > 0.85  # as smooth as samples of a flow, by this
    assert samples_flow(model, y)  # the series alone does not tell
    assert not samples_flow(model, y, y[0])
    # the tent's slopes are 1.8: its exponent is the largest of the map, by a flow's it would be far less
    card = scorecard(model, y, dt=1.0, steps=2000, long_steps=1000, pairs=2)
    assert card.hard.lyapunov is not None
    assert not card.hard.lyapunov.flow
    assert card.hard.lyapunov.largest == pytest.approx(np.log(1.8), abs=1e-6)
    wrong = lyapunov_spectrum(model, y[0], steps=2000, dt=1.0, flow=True).largest
    assert wrong < 0.7 * np.log(1.8)


def test_a_cycle_of_three_steps_is_no_path(learned):
    _, scale, x = learned
    turn = np.array([[np.cos(2.1), -np.sin(2.1)], [np.sin(2.1), np.cos(2.1)]])
    jumping = ALRNN(np.zeros(2), turn, np.zeros(2), np.eye(2), 0)
    assert not samples_flow(jumping, x[:, :2], scale.transform(x[0])[:2])


def test_a_model_that_rests_or_diverges_says_nothing_against_smooth_data(learned):
    _, scale, x = learned
    for rate in (0.5, 3.0):
        ending = ALRNN(np.full(3, rate), np.zeros((3, 3)), np.zeros(3), np.eye(3), 0)
        assert samples_flow(ending, x, scale.transform(x[0]))


def test_gaps_hide_no_flow(learned):
    model, scale, x = learned
    gaps = x[:3000].copy()
    gaps[np.random.default_rng(2).random(gaps.shape) < 0.1] = np.nan
    assert samples_flow(model, gaps, scale.transform(x[0]))


def test_what_has_no_path_of_its_own_is_refused(learned):
    model, _, _ = learned
    with pytest.raises(ValueError, match="flow must be False for a PALRNN"):
        lyapunov_spectrum(PALRNN(model, 0.1, 0.1, 0.1), np.zeros(3), flow=True)
    with pytest.raises(ValueError, match="flow must be False for inputs"):
        lyapunov_spectrum(model, np.zeros(3), inputs=np.ones((10, 1)), flow=True)
    with pytest.raises(ValueError, match="flow must be False for a System"):
        lyapunov_spectrum(make_system("lorenz63"), flow=True)


@pytest.mark.parametrize("discard", [0, 1, 2, 100])
def test_a_run_diverges_at_the_same_step_as_that_of_the_map(discard):
    turn = 1.05 * np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    spiral = ALRNN(np.zeros(2), turn, np.zeros(2), np.zeros((2, 2)), 0)
    steps = []
    for flow in (False, True):
        with pytest.raises(DivergenceError) as error:
            lyapunov_spectrum(spiral, np.ones(2), steps=1000, discard=discard, flow=flow)
        steps.append(error.value.step)
    assert steps[0] == steps[1] > 400
    # one that a free run survives has invariants
    x = np.random.default_rng(0).standard_normal((50, 2))
    found = quantities_of_interest(
        spiral, x, x1=np.ones(2), steps=steps[0] - 1 - discard, discard=discard, flow=True
    )
    assert found.diverged_at is None


@pytest.mark.parametrize("column", [np.nan, 1.0])
def test_a_column_that_says_nothing_is_no_flow(learned, column):
    model, _, x = learned
    silent = x[:500].copy()
    silent[:, 1] = column
    assert not samples_flow(model, silent)
    with pytest.raises(ValueError, match="reference must"):
        model_bars(_Same(model), silent, count=2, steps=100, dt=0.01)


def test_a_score_card_and_error_bars_take_the_exponents_that_they_are_told(learned):
    model, scale, x = learned
    how = {"standardizer": scale, "dt": 0.01, "steps": 1000}
    start = scale.transform(x[0])
    for flow in (False, True):
        given = {"steps": 1000, "dt": 0.01, "k": 1, "flow": flow}
        true = lyapunov_spectrum(model, start, **given).largest
        card = scorecard(model, x, k=1, flow=flow, long_steps=1000, pairs=2, **how)
        assert card.hard.lyapunov is not None
        assert card.hard.lyapunov.largest == pytest.approx(true, rel=1e-9)
        bars = model_bars(_Same(model), x, count=2, flow=flow, **how)
        assert bars.interval("exponent 1")[0] == pytest.approx(true, rel=1e-9)


class _Same:
    """Draws that are all the model."""

    def __init__(self, model: ALRNN) -> None:
        self.model = model

    def sample(self, count: int, *, seed: int = 0) -> list[ALRNN]:
        return [self.model] * count


def test_error_bars_are_of_the_exponents_that_the_score_card_has(learned):
    model, scale, x = learned
    how = {"standardizer": scale, "steps": 1000, "dt": 0.01}
    given = {"steps": 1000, "dt": 0.01, "k": None, "flow": True}
    true = lyapunov_spectrum(model, scale.transform(x[0]), **given).exponents
    bars = model_bars(_Same(model), x, count=2, **how)
    np.testing.assert_allclose([bars.interval(f"exponent {k}")[0] for k in (1, 2, 3)], true[:3], rtol=1e-9)
    found = invariant_error_bars(_Same(model), x, draws=2, **how)
    np.testing.assert_allclose(found.lyapunov, true[0], rtol=1e-9)
