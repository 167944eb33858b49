import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from palrnn.geometry import toy_information, toy_series, toy_study
from palrnn.geometry.toy import GATE_STDS

jax.config.update("jax_enable_x64", True)


def log_mixture(theta, x, sigma, gate_std):
    """Return log p(x_2..T | x_1) with the gate summed out: a two-component mixture per step."""
    before, after = x[:-1], x[1:]
    opened = norm.logcdf(before / gate_std) + norm.logpdf(after, theta[1] * before, sigma)
    closed = norm.logcdf(-before / gate_std) + norm.logpdf(after, theta[0] * before, sigma)
    return jnp.logaddexp(opened, closed).sum()


# compiled once for all cases
HESSIAN = jax.jit(jax.hessian(log_mixture))


@pytest.mark.parametrize("gate_std", [0.03, 0.2, 0.9])
@pytest.mark.parametrize(("a0", "a1"), [(0.9, 0.6), (0.5, -0.4)])
def test_the_closed_form_is_minus_the_hessian_of_the_mixture(gate_std, a0, a1):
    x = toy_series(gate_std, steps=80, a0=a0, a1=a1, seed=3)
    terms = toy_information(x, a0, a1, 0.15, gate_std)
    hessian = HESSIAN(jnp.array([a0, a1]), x, 0.15, gate_std)
    # two exact routes; rounding only
    np.testing.assert_allclose(terms.observed, -hessian, rtol=1e-9, atol=1e-9 * np.abs(hessian).max())


def test_the_terms_add_up_and_the_ratio_is_theirs():
    x = toy_series(0.3, seed=1)
    terms = toy_information(x, 0.9, 0.6, 0.15, 0.3)
    np.testing.assert_allclose(terms.observed, terms.complete - terms.missing, rtol=1e-14)
    assert terms.mir == pytest.approx(np.trace(terms.missing) / np.trace(terms.complete), rel=1e-12)
    assert np.linalg.eigvalsh(terms.missing).min() >= 0
    assert "mir=" in repr(terms)


def test_known_gates_leave_nothing_missing():
    x = 5.0 + 0.1 * np.sin(np.arange(50.0))
    terms = toy_information(x, 0.9, 0.6, 0.15, 0.01)
    # Phi(500): the gate is certain beyond anything float64 can say
    assert terms.entropy_bits == 0.0
    assert terms.mir == 0.0


def test_entropy_of_a_fair_coin_is_one_bit():
    # equal regimes tell nothing about the gate, and x = 0 leaves the prior at one half
    assert toy_information(np.zeros(5), 0.7, 0.7, 0.1, 1.0).entropy_bits == pytest.approx(1.0, abs=1e-15)


def test_the_simulated_gate_and_noise_follow_the_model():
    x = toy_series(0.3, steps=40_000, seed=2)
    before, after = x[:-1], x[1:]
    # three gate deviations below the boundary a0 rules; the slope of a regression through the origin has the
    # standard error sigma / sqrt(sum x^2)
    far = before < -0.9
    slope = before[far] @ after[far] / (before[far] @ before[far])
    assert slope == pytest.approx(0.9, abs=4 * 0.15 / np.sqrt(before[far] @ before[far]))


def test_the_sweep_shows_entropy_up_mir_up_curvature_down():
    study = toy_study()
    assert study.mir.shape == (25, 20)
    c = study.correlations
    print(study)
    # the paper's figure: monotone trends through the scatter of 20 seeds
    assert c.gate_entropy > 0.95
    assert c.entropy_mir > 0.95
    assert c.entropy_trace < -0.7
    assert np.all(np.diff(study.entropy_bits.mean(axis=1)) > 0)
    assert np.all(np.diff(study.mir.mean(axis=1)) > 0)
    assert len(study.rows()) == 500
    assert set(study.rows()[0]) == {"sigma_g", "seed", "entropy_bits", "mir", "log10_trace"}


def test_mir_agrees_with_an_independent_prototype():
    study = toy_study([0.1, 0.3, 0.9])
    reference = np.array([0.014, 0.18, 0.42])
    # two sets of 20 seeds differ by sqrt(2) standard errors of the mean, and the reference is rounded
    error = np.sqrt(2) * study.mir.std(axis=1, ddof=1) / np.sqrt(20) + 0.005 * reference
    assert np.all(np.abs(study.mir.mean(axis=1) - reference) < 3 * error)


def test_the_paper_sweeps_25_gate_noises():
    assert len(GATE_STDS) == 25
    assert GATE_STDS[0] == pytest.approx(0.03)
    assert GATE_STDS[-1] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"sigma": 0.0}, "sigma must"), ({"gate_std": 0.0}, "gate_std must"), ({"x": [1.0]}, "x must")],
)
def test_wrong_arguments_are_named(change, message):
    arguments = {"x": np.ones(5), "a0": 0.9, "a1": 0.6, "sigma": 0.15, "gate_std": 0.1} | change
    with pytest.raises(ValueError, match=message):
        toy_information(**arguments)
