"""Tuning of driven models, z' = F(z) + C s: the M-step learns C with the rest of the drift."""

import numpy as np
import pytest
from oracles.shallow_family import random_shallow

from palrnn import ALRNN, PALRNN, Noise, SAEMConfig, saem
from palrnn.engine.progress import quiet
from palrnn.forcing import itf_loss
from palrnn.model.inputs import driven
from palrnn.tuning.anchor import anchored_solution
from palrnn.tuning.mstep import drift_solution, process_moments, process_residuals
from palrnn.tuning.samples import SampleStatistics, expected_loss
from palrnn.tuning.sequences import window_pool
from palrnn.tuning.statistics import sufficient_statistics


def stimulus(times, inputs=2, seed=8):
    return np.random.default_rng(seed).standard_normal((times, inputs))


def alrnn_model(gated=2, process=0.3, latent=4):
    rng = np.random.default_rng(0)
    W, E = 0.15 * rng.standard_normal((latent, latent)), rng.standard_normal((latent, 2))
    h, C = 0.1 * rng.standard_normal(latent), rng.standard_normal((latent, 2))
    return PALRNN(ALRNN(np.full(latent, 0.6), W, h, E, gated, C), process, 0.2, 0.5)


def shallow_model():
    drift = random_shallow(3, 2, 3)
    C = np.random.default_rng(1).standard_normal((3, 2))
    return PALRNN(driven(drift, C), 0.3, 0.2, 0.5)


def statistics_of(model, s, seed=1):
    """Statistics of states and codes that the model drew, as if they had been smoothed."""
    drawn = model.sample(np.zeros(2), len(s), seed=seed, inputs=s)
    codes, states = drawn.codes[None], drawn.states[None, None]
    return drawn, sufficient_statistics(model, drawn.observations, codes, states, inputs=s)


def shifted(model, size=0.1, seed=3):
    theta = model.drift.theta
    moved = theta + size * np.random.default_rng(seed).standard_normal(theta.size)
    return model.with_drift(model.drift.with_theta(moved))


def test_without_gates_it_is_the_closed_form_regression_on_states_and_inputs():
    model, s = alrnn_model(gated=0), stimulus(400)
    drawn, statistics = statistics_of(model, s)
    found = drift_solution(statistics, shifted(model), ridge=0.0)
    design = np.column_stack([drawn.states[:-1], np.ones(399), s[:-1]])
    # A and W of a linear model are one matrix; what is left of the rows is h and C
    expected = np.linalg.lstsq(design, drawn.states[1:], rcond=None)[0].T
    np.testing.assert_allclose(np.diag(found.A) + found.W, expected[:, :4], atol=1e-9)
    np.testing.assert_allclose(found.h, expected[:, 4], atol=1e-9)
    np.testing.assert_allclose(found.C, expected[:, 5:], atol=1e-9)
    # and that is C, to four standard errors of a regression on 399 unit normal inputs
    np.testing.assert_allclose(found.C, model.drift.C, atol=4 * 0.3 / np.sqrt(399))
    errors = drawn.states[1:] - design @ expected.T
    np.testing.assert_allclose(process_residuals(statistics, found), (errors**2).mean(axis=0), rtol=1e-9)
    moments = process_moments(statistics, found)
    np.testing.assert_allclose(moments, errors.T @ errors / 399, atol=1e-12)


@pytest.mark.parametrize("full", [False, True], ids=["diagonal noise", "full noise"])
def test_sums_and_samples_have_the_same_solution(full):
    noise = Noise.full(0.09 * (np.eye(4) + 0.3)) if full else 0.3
    model, s = alrnn_model(process=noise), stimulus(200)
    drawn, sums = statistics_of(model, s)
    common = {name: value for name, value in sums.arrays().items() if name not in _ROWS}
    codes, states = drawn.codes[None], drawn.states[None, None]
    samples = SampleStatistics.of(model.drift, codes, states, common, s)
    one, other = (drift_solution(which, model, ridge=1e-2) for which in (sums, samples))
    # conjugate gradients to 1e-12, and normal equations
    np.testing.assert_allclose(one.rows, other.rows, atol=1e-8)
    np.testing.assert_allclose(process_moments(sums, one), process_moments(samples, one), atol=1e-12)


_ROWS = ("gram", "cross", "square", "outer")


@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_the_m_step_raises_its_objective(family):
    model, s = (alrnn_model() if family == "alrnn" else shallow_model()), stimulus(300)
    drawn, statistics = statistics_of(model, s)
    start = shifted(model)
    if family == "alrnn":
        common = {name: value for name, value in statistics.arrays().items() if name not in _ROWS}
        codes, states = drawn.codes[None], drawn.states[None, None]
        loss = expected_loss(SampleStatistics.of(model.drift, codes, states, common, s), start, 1e-3, None)
    else:
        loss = expected_loss(statistics, start, 1e-3, None)
    theta = start.drift.theta
    value, slope = loss(theta)
    size, rng = 1e-6, np.random.default_rng(0)
    for direction in rng.standard_normal((3, theta.size)):
        ahead, behind = loss(theta + size * direction)[0], loss(theta - size * direction)[0]
        # central differences of a smooth function; half of sqrt of the rounding
        assert slope @ direction == pytest.approx((ahead - behind) / (2 * size), rel=1e-5)
    found = drift_solution(statistics, start, ridge=1e-3, steps=200)
    after = loss(found.theta)
    assert after[0] < value
    if family == "alrnn":
        assert np.abs(after[1]).max() < 1e-9 * np.abs(slope).max()
    assert np.abs(found.C - model.drift.C).max() < np.abs(start.drift.C - model.drift.C).max()


@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_the_anchored_m_step_lowers_both_losses_together(family):
    model, s = (alrnn_model() if family == "alrnn" else shallow_model()), stimulus(200)
    drawn, statistics = statistics_of(model, s)
    start = shifted(model)
    x, given = drawn.observations.reshape(4, 50, 2), s.reshape(4, 50, 2)
    found = {
        beta: anchored_solution(
            statistics, start, x, forcing=5, beta=beta, ridge=1e-3, steps=60, inputs=given
        )
        for beta in (0.0, 100.0)
    }
    before, light, heavy = (
        itf_loss(drift, x, 5, inputs=given) for drift in (start.drift, found[0.0], found[100.0])
    )
    assert heavy < light
    assert heavy < before
    if family == "alrnn":
        plain = drift_solution(statistics, start, ridge=1e-3)
        np.testing.assert_allclose(found[0.0].rows, plain.rows, atol=1e-6)


def trials(model, lengths=(90, 70)):
    inputs = [stimulus(length, seed=k) for k, length in enumerate(lengths)]
    x = [model.sample(np.zeros(2), len(s), seed=k, inputs=s).observations for k, s in enumerate(inputs)]
    x[0][[7, 30], 0] = np.nan
    x[1][40] = np.nan
    return x, inputs


def test_windows_take_the_rows_of_their_inputs_where_gaps_move_them():
    x, inputs = trials(alrnn_model())
    x[0][10] = np.nan
    marks = [np.column_stack([np.arange(len(s)), np.full(len(s), k)]) for k, s in enumerate(inputs)]
    pool, of = window_pool(x, 10), window_pool(x, 10, of=marks)
    for window, rows_of in zip(pool, of, strict=True):
        k, start = int(rows_of[0, 1]), int(rows_of[0, 0])
        np.testing.assert_array_equal(window, x[k][start : start + 11])
    assert 11 in of[:, 0, 0]


SETTINGS = {"iterations": 3, "windows": 6, "length": 15, "particles": 24, "blend": 1.0, "ridge": 1e-3}


@pytest.mark.parametrize("smoother", ["ancestors", "gibbs", "conditional"])
def test_saem_learns_the_input_map(smoother):
    model = alrnn_model(gated=1, process=0.2)
    x, inputs = trials(model)
    drift = model.drift
    theta = drift.theta.copy()
    theta[-drift.C.size :] = 0.0
    start = model.with_drift(drift.with_theta(theta))
    target = "paper" if smoother == "ancestors" else "exact"
    config = SAEMConfig(configuration="full", smoother=smoother, target=target, **SETTINGS)
    found = saem(start, x, config, inputs=inputs, seed=1, threads=1, progress=quiet)
    # EM halves the distance in a few rounds for the observed units; the data hardly fix the coordinates of
    # the others, nor what drives them
    C, truth = found.model.drift.C[:2], drift.C[:2]
    assert np.abs(C - truth).max() < 0.5 * np.abs(truth).max()
    one = found.history["evidence"]
    if smoother != "conditional":
        assert one[2] > one[0]


def test_a_shallow_model_is_tuned_and_anchored_with_trials_and_gaps():
    model = shallow_model()
    x, inputs = trials(model)
    config = SAEMConfig(
        configuration="anchored", anchor_length=30, anchor_steps=5, beta=1.0, forcing=5, target="exact",
        rollout_steps=60, rollout_discard=10, heldout_windows=3, **(SETTINGS | {"iterations": 1}),
    )  # fmt: skip
    found = saem(
        shifted(model), x, config, inputs=inputs, seed=1, threads=1, progress=quiet,
        heldout=x[1], heldout_inputs=inputs[1], reference=x[0], reference_inputs=inputs[0],
    )  # fmt: skip
    row = found.history.rows[-1]
    assert np.isfinite([row["itf_loss"], row["heldout_evidence"], row["dstsp"]]).all()
    assert found.history.rows[-1]["itf_loss"] < found.history.rows[0]["itf_loss"]


@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_a_driven_run_continues_to_the_same_bytes_and_not_with_other_inputs(family, tmp_path):
    model = alrnn_model() if family == "alrnn" else shallow_model()
    x, inputs = trials(model)
    config = SAEMConfig(configuration="full", target="exact", robbins_monro=True, drift_steps=3, **SETTINGS)
    how = {"seed": 1, "threads": 1, "progress": quiet}
    whole = saem(model, x, config, inputs=inputs, **how)

    class Stop(Exception):
        pass

    def stopping(done, total, figures):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        saem(model, x, config, inputs=inputs, run=tmp_path, **(how | {"progress": stopping}))
    again = saem(model, x, config, inputs=inputs, run=tmp_path, **how)
    np.testing.assert_array_equal(again.model.drift.theta, whole.model.drift.theta)
    with pytest.raises(ValueError, match="another model or data"):
        saem(model, x, config, inputs=[2.0 * s for s in inputs], run=tmp_path, **how)


def test_wrong_inputs_are_named():
    model = alrnn_model()
    x, inputs = trials(model)
    config = SAEMConfig(configuration="full", **SETTINGS)
    with pytest.raises(ValueError, match="inputs must be given"):
        saem(model, x, config)
    with pytest.raises(ValueError, match="inputs must hold one series for each of 2 trials"):
        saem(model, x, config, inputs=inputs[:1])
    with pytest.raises(ValueError, match=r"inputs\[1\] must be \(70, 2\)"):
        saem(model, x, config, inputs=[inputs[0], inputs[1][:-1]])
    with pytest.raises(ValueError, match="heldout_inputs must be given"):
        saem(model, x, config, inputs=inputs, heldout=x)
    with pytest.raises(ValueError, match="reference_inputs must be given"):
        saem(model, x, config, inputs=inputs, reference=x[0])
    still = model.with_drift(ALRNN(*(getattr(model.drift, name) for name in ("A", "W", "h", "E", "gated"))))
    with pytest.raises(ValueError, match="inputs must be None"):
        saem(still, x, config, inputs=inputs)
