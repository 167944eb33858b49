"""Simulated systems: the flow against SciPy's integrator, the noise against its law."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
from oracles.flows import lorenz63_field, lorenz96_field, rk4, rossler_field
from scipy.integrate import solve_ivp
from scipy.stats import kurtosis

from palrnn.data import (
    Dataset,
    System,
    add_observation_noise,
    field_jacobian,
    kernels,
    known_systems,
    lorenz63,
    lorenz96,
    make_system,
    rossler,
    system,
    vector_field,
)
from palrnn.data.systems import base, lorenz63_system, lorenz96_system, rossler_system
from palrnn.invariants import lyapunov_spectrum

SYSTEMS = {
    "lorenz63": (lorenz63, lorenz63_system(), lorenz63_field, 0.01),
    "rossler": (rossler, rossler_system(), rossler_field, 0.05),
    "lorenz96": (lorenz96, lorenz96_system(), lorenz96_field, 0.01),
}
each_system = pytest.mark.parametrize(
    ("simulate", "system", "field", "dt"), SYSTEMS.values(), ids=list(SYSTEMS)
)


def _exact(field, start, times):
    found = solve_ivp(lambda _, z: field(z), (0.0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-12)
    return found.y.T


@each_system
def test_a_deterministic_series_follows_scipys_integrator(simulate, system, field, dt):
    x = simulate(30, dt=dt / 4, discard=500, seed=3)
    exact = _exact(field, x[0], np.arange(30) * dt / 4)
    # the local error of a step of 0.0025 (or 0.0125 for the slow Rössler system) is about 1e-9 of the state
    np.testing.assert_allclose(x, exact, rtol=0, atol=1e-6)


@each_system
def test_the_integrator_is_of_fourth_order(simulate, system, field, dt):
    start = simulate(1, discard=2000, seed=1)[0]
    span = 32 * dt
    exact = _exact(field, start, np.array([0.0, span]))[-1]
    errors = []
    for steps in (32, 64, 128):
        states = np.empty((steps, len(start)))
        kernels.simulate(
            system.field,
            start.copy(),
            np.array(system.parameters),
            span / steps,
            np.empty((0, len(start))),
            steps,
            np.empty((5, len(start))),
            states,
        )
        errors.append(np.linalg.norm(states[-1] - exact))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    # halving the step divides the error by 16 as the step goes to zero; at these steps up to higher orders
    np.testing.assert_allclose(orders, 4.0, atol=0.35)


@each_system
def test_the_kernel_field_is_the_textbook_field(simulate, system, field, dt):
    for z in simulate(20, seed=5):
        out = np.empty_like(z)
        system.field(z, np.array(system.parameters), out)
        np.testing.assert_allclose(out, field(z), rtol=1e-12, atol=1e-11)


@each_system
def test_the_jacobian_of_the_field_equals_finite_differences(simulate, system, field, dt):
    step = 0.5
    for z in simulate(5, discard=3000, seed=2):
        jacobian = np.full((len(z), len(z)), np.nan)
        system.jacobian(z, np.array(system.parameters), jacobian)
        nudges = step * np.eye(len(z))
        # the fields are quadratic, so central differences have no error but rounding, at any step
        differences = ((field(z + nudges) - field(z - nudges)) / (2 * step)).T
        np.testing.assert_allclose(jacobian, differences, rtol=0, atol=1e-11)


def test_the_smallest_ring_of_lorenz96_has_the_right_jacobian():
    system = lorenz96_system(4)
    z, out = np.array([1.0, 2.0, 3.0, 5.0]), np.empty((4, 4))
    system.jacobian(z, np.array(system.parameters), out)
    differences = ((lorenz96_field(z + np.eye(4)) - lorenz96_field(z - np.eye(4))) / 2).T
    np.testing.assert_allclose(out, differences, atol=1e-12)


@each_system
def test_the_process_noise_is_white_with_the_stated_variance(simulate, system, field, dt):
    steps, std = 20_000, 0.02 if system.name == "rossler" else 0.1
    x = simulate(steps + 1, dt=dt, process_std=std, seed=11)
    residuals = x[1:] - rk4(field, x[:-1], dt)
    expected = std * np.sqrt(dt) * system.spread(dt)
    scaled = residuals / expected
    # four standard errors of a mean, of a variance, of a lag-one correlation and of a kurtosis of normal
    # numbers
    assert np.abs(scaled.mean(axis=0)).max() < 4 / np.sqrt(steps)
    assert np.abs(scaled.var(axis=0) - 1).max() < 4 * np.sqrt(2 / steps)
    assert np.abs((scaled[1:] * scaled[:-1]).mean(axis=0)).max() < 4 / np.sqrt(steps)
    assert np.abs(kurtosis(scaled, axis=0)).max() < 4 * np.sqrt(24 / steps)
    between = np.corrcoef(scaled.T) - np.eye(x.shape[1])
    assert np.abs(between).max() < 5 / np.sqrt(steps)  # the largest of up to 780 pairs
    # and the noise does not know the state that it is added to
    assert np.abs([np.corrcoef(x[:-1, i], scaled[:, i])[0, 1] for i in range(3)]).max() < 4 / np.sqrt(steps)


def test_the_scale_of_the_noise_can_be_given():
    x = lorenz63(20_001, process_std=0.2, scale=[1.0, 2.0, 0.0], seed=4)
    residuals = x[1:] - rk4(lorenz63_field, x[:-1], 0.01)
    # four standard errors of a standard deviation
    np.testing.assert_allclose(residuals.std(axis=0), [0.02, 0.04, 0.0], rtol=4 / np.sqrt(40_000), atol=1e-10)


@pytest.mark.slow
def test_the_reference_deviations_are_those_of_the_attractor():
    # a long trajectory of SciPy's, thinned; literature gives 7.9, 9.0, 8.6 for Lorenz-63
    times = np.arange(0.0, 400.0, 0.05)
    found = solve_ivp(lambda _, z: lorenz63_field(z), (0, 400), [1.0, 2.0, 20.0], "RK45", times, rtol=1e-6)
    deviations = found.y[:, 400:].std(axis=1)
    # 380 time units hold some 500 turns: deviations are known to about 3 %
    np.testing.assert_allclose(lorenz63_system().spread(0.01), deviations, rtol=0.04)


def test_the_reference_sees_the_whole_attractor_however_short_the_steps():
    system = lorenz63_system()
    np.testing.assert_array_equal(system.spread(1e-5), system.spread(0.01))
    assert not system.spread(0.01).flags.writeable


@each_system
def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(simulate, system, field, dt):
    for process_std in (0.0, 0.02):
        one = simulate(300, process_std=process_std, seed=7)
        assert simulate(300, process_std=process_std, seed=7).tobytes() == one.tobytes()
        assert not np.array_equal(simulate(300, process_std=process_std, seed=8), one)


def test_discard_drops_the_first_steps():
    np.testing.assert_array_equal(lorenz63(50, discard=30, seed=1), lorenz63(80, discard=0, seed=1)[30:])


@pytest.mark.parametrize("seed", range(40))
def test_every_start_reaches_the_attractor(seed):
    for simulate in (lorenz63, rossler, lorenz96):
        assert np.abs(simulate(500, seed=seed)).max() < 60


def test_no_lorenz_series_lingers_at_a_fixed_point():
    # near a fixed point a trajectory spirals for thousands of steps before it sees the rest of the attractor
    longest = 0
    for seed in range(100):
        x = lorenz63(2000, discard=0, seed=seed)[:, 0]
        longest = max(longest, int(np.argmax(np.sign(x) != np.sign(x[0]))))
    assert 0 < longest < 1000  # within the default transient


def test_observation_noise_is_not_the_process_noise_again_when_seeds_are_equal():
    steps = 5000
    x = lorenz63(steps, process_std=0.1, discard=0, seed=9)
    process = (x[1:] - rk4(lorenz63_field, x[:-1], 0.01)).T
    observation = (add_observation_noise(x, 1.0, seed=9) - x).T
    for lag in range(4):
        for a, b in zip(process, observation, strict=True):
            size = steps - 1 - lag
            # the largest of 24 correlations of independent noises
            assert abs(np.corrcoef(a[:size], b[lag : lag + size])[0, 1]) < 4.5 / np.sqrt(size)
            assert abs(np.corrcoef(a[lag : lag + size], b[:size])[0, 1]) < 4.5 / np.sqrt(size)


def test_a_hundred_thousand_steps_take_well_under_a_second():
    lorenz63(10)

    def seconds():
        start = time.process_time()
        lorenz63(100_000)
        return time.process_time() - start

    # about 0.02 s of processor time, which does not count what other processes take
    assert min(seconds() for _ in range(3)) < 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lorenz63(0), "steps must be >= 1, got 0"),
        (lambda: lorenz63(10.0), "steps must be a whole number"),
        (lambda: lorenz63(10, dt=0.0), "dt must be greater than 0"),
        (lambda: lorenz63(10, dt=np.nan), "dt must be a finite number"),
        (lambda: lorenz63(10, process_std=-0.1), "process_std must be >= 0"),
        (lambda: lorenz63(10, discard=-1), "discard must be >= 0"),
        (lambda: lorenz63(10, scale=[1.0]), r"scale must have shape \(3,\), got \(1,\)"),
        (lambda: lorenz63(10, scale=[1.0, 1.0, -1.0], process_std=0.1), "scale must be >= 0, got -1"),
        (lambda: lorenz63(10, sigma=np.nan), "sigma must be a finite number"),
        (lambda: rossler(10, c="big"), "c must be a finite number"),
        (lambda: lorenz96(10, forcing=None), "forcing must be a finite number"),
        (lambda: lorenz96(10, dim=3), "dim must be >= 4, got 3"),
        (lambda: lorenz63(10, seed=-1), "seed must be >= 0"),
        (lambda: lorenz63(1000, dt=0.5), r"lorenz63 left its attractor .* dt=0\.5"),
        (lambda: rossler(20_000, process_std=0.1), r"rossler left its attractor .* process_std=0\.1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_dimension_of_lorenz96_is_a_parameter():
    assert lorenz96(10, dim=7).shape == (10, 7)


@vector_field
def _swirl(z, p, out):
    """The Stuart-Landau oscillator: a limit cycle of radius one."""
    inside = 1.0 - z[0] * z[0] - z[1] * z[1]
    out[0] = z[0] * inside - p[0] * z[1]
    out[1] = z[1] * inside + p[0] * z[0]


@field_jacobian
def _swirl_jacobian(z, p, out):
    out[0, 0] = 1.0 - 3.0 * z[0] * z[0] - z[1] * z[1]
    out[0, 1] = -2.0 * z[0] * z[1] - p[0]
    out[1, 0] = -2.0 * z[0] * z[1] + p[0]
    out[1, 1] = 1.0 - z[0] * z[0] - 3.0 * z[1] * z[1]


@pytest.fixture
def swirl():
    @system("swirl", dt=0.02, exponents=(0.0, -2.0))
    def swirl_system(omega: float = 2.0) -> System:
        return System(_swirl, _swirl_jacobian, (omega,), (1.0, 0.0))

    yield swirl_system
    base._KNOWN.pop("swirl")


def test_a_system_is_added_by_one_file(swirl):
    assert "swirl" in known_systems()
    data = Dataset.prepare("swirl", steps=2000, parameters={"omega": 3.0})
    # on the cycle, with omega / 2 pi turns per unit of time; the error of RK4 at this step is 1e-8
    np.testing.assert_allclose(np.linalg.norm(data.trials[0], axis=1), 1.0, atol=1e-6)
    turned = np.unwrap(np.arctan2(*data.trials[0].T[::-1]))
    np.testing.assert_allclose(np.diff(turned) / 0.02, 3.0, rtol=1e-5)
    exponents = lyapunov_spectrum(data.true_system, steps=5000, dt=0.02).exponents
    # along the cycle 0, towards it -2
    np.testing.assert_allclose(exponents, [0.0, -2.0], atol=0.01)
    assert (make_system("swirl").lyapunov, data.lyapunov) == (0.0, None)


def test_a_name_is_given_once(swirl):
    with pytest.raises(ValueError, match="system 'swirl' is registered already, by test_systems"):
        system("swirl", dt=1.0)(lambda: None)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"name": "pendulum"}, "system must be one of lorenz63, lorenz96, rossler, got 'pendulum'"),
        ({"name": "rossler", "rho": 3.0}, "rossler has no parameter rho, there are a, b, c"),
        ({"name": "rossler", "dim": 4}, "system = 'rossler' has 3 coordinates, got 4 columns"),
        ({"name": "lorenz96", "dim": 3}, "dim must be >= 4, got 3"),
    ],
)
def test_a_system_that_is_not_known_is_refused(how, message):
    with pytest.raises(ValueError, match=message):
        make_system(how.pop("name"), **how)


@each_system
def test_a_system_is_found_by_name_and_survives_pickling(simulate, system, field, dt):
    assert make_system(system.name) == system
    assert system.customary_dt == dt
    assert pickle.loads(pickle.dumps(system)) == system


@pytest.mark.parametrize("exponents", [(0.9056,), (-14.57, 0.0, 0.9056)])
def test_exponents_of_a_system_are_all_of_them_in_descending_order(exponents):
    with pytest.raises(ValueError, match="exponents must be all 3 in descending order"):
        replace(lorenz63_system(), exponents=exponents)


def test_the_exponents_of_the_literature_are_those_of_the_systems():
    for name, steps in (("lorenz63", 200_000), ("rossler", 200_000)):
        found = make_system(name)
        result = lyapunov_spectrum(found, steps=steps, dt=found.customary_dt)
        assert abs(result.largest - found.lyapunov) < 4 * result.stderr[0]
        assert result.stderr[0] < 0.05 * found.lyapunov
        # along the flow the sum telescopes: its error is of the order of 1 / time, and not statistical; at
        # Rössler's customary step RK4 contracts by 0.1 % less than the flow does
        errors = np.maximum(4 * result.stderr, 20 / (steps * found.customary_dt))
        errors = np.maximum(errors, 0.002 * np.abs(found.exponents))
        assert (np.abs(result.exponents - found.exponents) < errors).all()
