from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.plain_invariants import qr_exponents

from palrnn import ALRNN, PALRNN, lyapunov_spectrum
from palrnn.data.systems import lorenz63_system, lorenz96_system, rossler_system
from palrnn.invariants import DivergenceError, cycles, kaplan_yorke_dimension
from palrnn.invariants.exponents import neutral_part


def _model(seed=0):
    """Three weakly coupled tent maps z' = 1 - 1.7 |z| that drive three contracting units: chaotic."""
    rng = np.random.default_rng(seed)
    W = 0.03 * rng.uniform(-1, 1, (6, 6)) - np.diag([0, 0, 0, 3.4, 3.4, 3.4])
    A, h = np.array([0.5, 0.4, 0.3, 1.7, 1.7, 1.7]), np.array([0.1, 0.2, -0.1, 1.0, 1.0, 1.0])
    return ALRNN(A, W, h, 0.1 * rng.standard_normal((6, 2)), 3)


def _linear(J):
    dim = len(J)
    return ALRNN(np.zeros(dim), J, np.zeros(dim), np.eye(dim), 0)


def test_lorenz63_has_its_literature_exponents():
    result = lyapunov_spectrum(lorenz63_system(), steps=200_000)
    # Sparrow (1982): 0.9056, 0, -14.572; four standard errors, of which the first is about 0.01
    assert np.all(np.abs(result.exponents - [0.9056, 0.0, -14.5723]) < 4 * result.stderr)
    assert np.all(result.stderr < [0.02, 0.006, 0.02])
    # the divergence of the flow is constant; RK4 at dt = 0.01 keeps the sum to 1e-4
    assert result.exponents.sum() == pytest.approx(-(10 + 1 + 8 / 3), abs=1e-3)
    # literature: 2.06
    assert result.kaplan_yorke == pytest.approx(2.062, abs=0.005)


def test_the_standard_error_is_the_scatter_of_independent_runs():
    system = lorenz63_system()
    starts = [system.simulate(1, dt=0.01, discard=20_000, seed=seed)[0] for seed in range(40)]
    runs = [lyapunov_spectrum(system, start, steps=20_000) for start in starts]
    scatter = np.std([run.exponents for run in runs], axis=0, ddof=1)
    told = np.sqrt(np.mean([run.stderr**2 for run in runs], axis=0))
    # the scatter of 40 runs is known to 11 percent; plain block means would be out by a factor of four
    np.testing.assert_array_less(scatter / 1.5, told)
    np.testing.assert_array_less(told, 1.6 * scatter)


def test_rossler_has_its_literature_exponents():
    result = lyapunov_spectrum(rossler_system(), steps=100_000, dt=0.05)
    # Sprott (2003) at a = b = 0.2, c = 5.7: 0.0714, 0, -5.3943
    assert np.all(np.abs(result.exponents - [0.0714, 0.0, -5.3943]) < 4 * result.stderr)
    assert result.stderr[0] < 0.005


def test_lorenz96_has_its_literature_exponent():
    result = lyapunov_spectrum(lorenz96_system(), steps=20_000, dt=0.02, k=1)
    # Karimi and Paul (2010) and others: 1.67 at F = 8 in 40 dimensions
    assert abs(result.largest - 1.67) < 4 * result.stderr[0]
    assert result.stderr[0] < 0.06
    assert result.kaplan_yorke is None


def test_the_tangent_map_of_rk4_equals_finite_differences():
    system = lorenz63_system()
    start = np.array([1.0, 2.0, 20.0])
    # over so few steps the sum of all exponents is the log-determinant of the map's own derivative
    steps, dt, eps = 20, 0.01, 1e-5
    result = lyapunov_spectrum(system, start, steps=steps, discard=0, dt=dt)
    from palrnn.data import kernels

    def flow(z):
        out, room = np.empty((steps, 3)), np.empty((5, 3))
        kernels.simulate(system.field, z, np.array(system.parameters), dt, np.empty((0, 3)), steps, room, out)
        return out[-1]

    J = np.column_stack([(flow(start + eps * e) - flow(start - eps * e)) / (2 * eps) for e in np.eye(3)])
    # central differences: eps^2 times third derivatives, and rounding / eps
    assert result.exponents.sum() * steps * dt == pytest.approx(np.log(abs(np.linalg.det(J))), abs=1e-6)


def test_a_linear_map_has_the_logs_of_its_eigenvalue_moduli():
    rng = np.random.default_rng(1)
    J = rng.standard_normal((5, 5))
    result = lyapunov_spectrum(_linear(J), np.zeros(5), steps=20_000, discard=2000, dt=1.0)
    expected = np.sort(np.log(np.abs(np.linalg.eigvals(J))))[::-1]
    # a complex pair turns: its two directions swap for ever, and the sum over T steps is off by O(1)
    np.testing.assert_allclose(result.exponents, expected, atol=5 / 20_000)


def test_directions_along_the_axes_do_not_hide_the_largest_exponent():
    # with tangent vectors started on the axes, the first would measure log 0.5 for ever
    result = lyapunov_spectrum(_linear(np.diag([0.5, 0.9])), np.zeros(2), steps=500, dt=1.0)
    np.testing.assert_allclose(result.exponents, np.log([0.9, 0.5]), rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_spectrum_does_not_depend_on_an_orthogonal_change_of_basis(seed):
    rng = np.random.default_rng(seed)
    moduli = np.array([1.3, 0.9, 0.5, 0.2])
    S = rng.standard_normal((4, 4)) + 3 * np.eye(4)
    J = S @ np.diag(moduli) @ np.linalg.inv(S)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    maps = (_linear(J), _linear(Q @ J @ Q.T))
    spectra = [lyapunov_spectrum(m, np.zeros(4), steps=200, discard=400, dt=1.0).exponents for m in maps]
    # aligned, both are the logs of the moduli: the slowest gap, (0.9 / 1.3)^400, is far below rounding
    np.testing.assert_allclose(spectra[0], spectra[1], atol=1e-8)
    np.testing.assert_allclose(spectra[0], np.log(moduli), atol=1e-8)


def _cycling(seed):
    """A random network that ends on a stable cycle, A on its two ungated units folded into W."""
    rng = np.random.default_rng(seed)
    A, W = rng.uniform(-0.3, 0.5, 6), 1.2 * rng.standard_normal((6, 6)) / np.sqrt(3)
    W += np.diag(np.r_[A[:2], np.zeros(4)])
    A[:2] = 0.0
    return ALRNN(A, W, rng.standard_normal(6), rng.standard_normal((6, 2)), 4)


@pytest.mark.parametrize("seed", [276, 388])
def test_on_a_stable_cycle_the_exponents_are_the_logs_of_its_multipliers(seed):
    model = _cycling(seed)
    cycle = next(c for c in cycles(model, model.rollout(np.zeros(2), 300, discard=3000).states) if c.stable)
    result = lyapunov_spectrum(model, np.zeros(2), steps=500 * cycle.period, discard=3000, dt=1.0)
    expected = np.log(np.abs(cycle.multipliers)) / cycle.period
    # complex multipliers turn the directions for ever: O(1) over the whole run
    np.testing.assert_allclose(result.exponents[:4], expected[:4], atol=5 / (500 * cycle.period))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_turning_the_ungated_units_of_a_switching_network_changes_nothing(seed):
    model = _cycling(276)
    turn = np.eye(6)
    turn[:2, :2] = np.linalg.qr(np.random.default_rng(seed).standard_normal((2, 2)))[0]
    # with A = 0 on the ungated units, z -> turn z is again an AL-RNN
    turned = ALRNN(model.A, turn @ model.W @ turn.T, turn @ model.h, model.E, 4)
    spectra = [lyapunov_spectrum(m, np.zeros(2), steps=4000, discard=3000, dt=1.0) for m in (model, turned)]
    # both runs are on the same cycle; their directions differ by phases that leave O(1) over 4000 steps
    np.testing.assert_allclose(spectra[0].exponents[:4], spectra[1].exponents[:4], atol=5 / 4000)


def test_it_equals_library_qr_along_the_rollout():
    model = _model(seed=3)
    x1 = np.array([0.3, -0.2])
    steps = 40  # rounding grows by 1.7 a step: after 40, both rollouts still have the same gates
    result = lyapunov_spectrum(model, x1, steps=steps, discard=0, dt=0.5, seed=9)
    states = model.rollout(x1, steps).states
    assert len(np.unique(model.codes(states), axis=0)) > 1
    rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(1,)))
    directions = np.linalg.qr(rng.standard_normal((6, 6)).T)[0]
    expected = np.sort(qr_exponents(model.jacobian(states), directions) / 0.5)[::-1]
    np.testing.assert_allclose(result.exponents, expected, rtol=1e-9)


def test_the_k_largest_are_the_first_of_all():
    model = _model(seed=4)
    whole = lyapunov_spectrum(model, np.zeros(2), steps=3000, dt=1.0)
    some = lyapunov_spectrum(model, np.zeros(2), steps=3000, dt=1.0, k=2)
    np.testing.assert_allclose(some.exponents, whole.exponents[:2], rtol=1e-9)
    assert some.dimension == 6


def test_the_way_of_the_state_does_not_depend_on_how_many_are_asked_for():
    # 24 coupled tents: a state that rounds otherwise goes another way after a hundred steps
    rng, dim = np.random.default_rng(1), 24
    W = 0.02 * rng.uniform(-1, 1, (dim, dim)) - 3.4 * np.eye(dim)
    model = ALRNN(np.full(dim, 1.7), W, np.ones(dim), 0.1 * rng.standard_normal((dim, 2)), dim)
    found = [lyapunov_spectrum(model, np.zeros(2), steps=2000, dt=1.0, k=k).largest for k in (1, 3, 8, dim)]
    assert found[0] > 0.1
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("exponents", "expected"),
    [
        ([0.5, -0.2, -3.0], 0.4),
        ([0.5, 0.01, -3.0], 0.02),
        ([0.5], 0.0),
        ([0.5, 0.3], 0.0),
        ([0.02, -1.0], 0.0),
        ([0.5, -np.inf], 1.0),
    ],
)
def test_how_far_an_exponent_is_from_zero(exponents, expected):
    # that of zero is not among positive ones only, and a run of 100 that has grown by e^2 is no chaos
    assert neutral_part(np.array(exponents), 100.0) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_as_many_as_the_dimension_takes_tell_the_dimension(seed):
    model = _model(seed=seed)
    whole = lyapunov_spectrum(model, np.zeros(2), steps=3000, dt=1.0)
    some = lyapunov_spectrum(model, np.zeros(2), steps=3000, dt=1.0, k="dimension")
    assert some.kaplan_yorke == pytest.approx(whole.kaplan_yorke, rel=1e-9)
    assert len(some.exponents) >= 4


def test_more_exponents_are_taken_until_their_sum_is_negative():
    # five directions grow and one shrinks: no fewer than all six tell the dimension
    growing = np.diag([1.1, 1.1, 1.1, 1.1, 1.1, 0.1])
    model = ALRNN(np.zeros(6), growing, np.zeros(6), np.eye(6)[:, :2], 0)
    found = lyapunov_spectrum(model, np.zeros(2), steps=30, discard=20, dt=1.0, k="dimension")
    assert len(found.exponents) == 6
    assert found.kaplan_yorke == pytest.approx(5 + 5 * np.log(1.1) / -np.log(0.1), rel=1e-6)


def test_sampled_gates_at_zero_width_and_no_noise_are_the_hard_rollout():
    model = _model(seed=5)
    hard = lyapunov_spectrum(model, np.zeros(2), steps=500)
    sampled = lyapunov_spectrum(PALRNN(model, 0.1, 0.1, 0.0), np.zeros(2), steps=500, process_noise=False)
    np.testing.assert_array_equal(hard.exponents, sampled.exponents)


def test_sampled_rollouts_use_the_jacobians_of_the_sampled_gates():
    # one gated unit held near zero: its gate is a fair coin, whatever the hard gate says
    # J = a + w c with c ~ Bernoulli(1/2): lambda = (log|a| + log|a + w|) / 2, not the log of the mean
    a, w = 0.5, 1.0
    drift = ALRNN([a], [[w]], [0.0], [[1.0]], 1)
    model = PALRNN(drift, 1e-9, 1.0, 1e6)
    result = lyapunov_spectrum(model, [0.0], steps=40_000, dt=1.0, seed=2)
    expected = 0.5 * (np.log(a) + np.log(a + w))
    # one standard error is log(3) / 2 / sqrt(40000) = 0.0027; its estimate from one run is good to a third
    assert abs(result.largest - expected) < 4 * 0.0028
    assert result.stderr[0] == pytest.approx(np.log(3) / 2 / 200, rel=0.8)


def test_the_seed_decides_a_sampled_spectrum():
    model = PALRNN(_model(seed=6), 0.01, 0.1, 0.02)
    a, b, c = (lyapunov_spectrum(model, np.zeros(2), steps=300, seed=s).exponents for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_a_run_in_chunks_is_the_run_in_one(monkeypatch):
    whole = lyapunov_spectrum(_model(seed=7), np.zeros(2), steps=500, discard=50)
    monkeypatch.setattr("palrnn.invariants.lyapunov._CHUNK", 33)
    chunked = lyapunov_spectrum(_model(seed=7), np.zeros(2), steps=500, discard=50)
    np.testing.assert_array_equal(chunked.trace, whole.trace)


def test_a_singular_jacobian_gives_minus_infinity_and_no_nan():
    J = np.array([[0.9, 0.3, 0.1], [0.2, 0.4, 0.3], [1.1, 0.7, 0.4]])  # the last row is the sum of the others
    result = lyapunov_spectrum(_linear(J), np.zeros(3), steps=100, dt=1.0)
    expected = np.sort(np.log(np.abs(np.linalg.eigvals(J))))[::-1]
    np.testing.assert_allclose(result.exponents[:2], expected[:2], atol=0.02)
    assert result.exponents[2] == -np.inf
    assert result.stderr[2] == 0.0
    assert not np.isnan(result.trace).any()
    zero = lyapunov_spectrum(_linear(np.zeros((2, 2))), np.zeros(2), steps=50)
    assert np.all(zero.exponents == -np.inf)
    assert zero.kaplan_yorke == 0.0


def test_a_diverging_rollout_says_at_which_step():
    model = _linear(np.array([[10.0]]))
    # 10^t > 1e10 first at t = 11, since 1e10 itself is still within the bound
    with pytest.raises(DivergenceError, match="diverged after 11 steps") as error:
        lyapunov_spectrum(model, [1.0])
    assert error.value.step == 11
    # as it arrives from another process
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    with pytest.raises(DivergenceError) as error:
        lyapunov_spectrum(model, [1.0], discard=5)
    assert error.value.step == 11


def test_the_trace_ends_at_the_result_and_settles():
    result = lyapunov_spectrum(lorenz63_system(), steps=40_000)
    np.testing.assert_array_equal(result.trace[-1], result.exponents)
    assert result.times[-1] == pytest.approx(400.0)
    assert np.abs(result.trace[-20:, 0] - result.largest).max() < 0.1


@pytest.mark.parametrize(
    ("exponents", "dimension", "expected"),
    [
        ([0.9, 0.0, -14.5], 3, 2 + 0.9 / 14.5),
        ([-0.1, -2.0], 2, 0.0),
        ([0.5, -0.25, -0.5], 3, 2.5),
        ([0.5, 0.1], 2, 2.0),
        ([0.5, 0.1], 3, None),
        ([0.5, -np.inf], 2, 1.0),
        ([0.0, -1.0], 2, 1.0),
    ],
)
def test_kaplan_yorke(exponents, dimension, expected):
    got = kaplan_yorke_dimension(exponents, dimension)
    assert got == (None if expected is None else pytest.approx(expected, rel=1e-12))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x1": None}, "x1 must be the first observation"),
        ({"x1": np.zeros(3)}, r"x1 must have shape \(2,\)"),
        ({"k": 7}, "k must be from 1 to 6"),
        ({"dt": 0.0}, "dt must be greater than 0"),
        ({"steps": 3}, "steps must be >= 20"),
        ({"model": "a model"}, "model must be an ALRNN"),
    ],
)
def test_errors_name_the_argument(arguments, words):
    with pytest.raises(ValueError, match=words):
        lyapunov_spectrum(**({"model": _model(), "x1": np.zeros(2)} | arguments))
