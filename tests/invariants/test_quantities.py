from __future__ import annotations

import numpy as np
import pytest

from palrnn import ALRNN, PALRNN, Standardizer, dstsp, dstsp_floor, lyapunov_spectrum, spectrum_distance
from palrnn.invariants import quantities_of_interest, stochastic_counterparts


def _tent(slope=1.7):
    return ALRNN([slope], [[-2 * slope]], [1.0], [[1.0]], 1)


SCALE = Standardizer(np.array([5.0]), np.array([3.0]))


def test_hard_gated_quantities_are_those_of_the_rollout_in_raw_units():
    model = _tent()
    reference = SCALE.inverse(model.rollout([0.2], 2000).states)
    result = quantities_of_interest(model, reference, standardizer=SCALE, x1=[5.9], discard=50, dt=1.0)
    generated = 3.0 * model.rollout([0.3], 2000, discard=50).states + 5.0
    # (5.9 - 5) / 3 is 0.3 up to rounding, which the map doubles every step or so: compare what does not care
    assert result.generated.shape == generated.shape
    # a map remembers itself for a step
    assert result.dstsp.value == dstsp(result.generated, reference, delay=1).value
    assert result.spectrum_distance == spectrum_distance(result.generated, reference)
    assert result.lyapunov.largest == pytest.approx(np.log(1.7), rel=1e-9)
    # the same map and length: both are draws from the floor
    longer = SCALE.inverse(model.rollout([0.2], 20_000).states)
    assert result.dstsp.value < 1.5 * dstsp_floor(longer, length=2000, delay=1).high


def test_the_sampled_counterpart_has_noise_and_the_hard_one_has_not():
    model = PALRNN(_tent(), 0.02, 0.5, 0.02)
    reference = SCALE.inverse(model.drift.rollout([0.2], 3000).states)
    both = stochastic_counterparts(model, reference, standardizer=SCALE, dt=1.0, discard=100)
    assert both.hard.diverged_at is None
    assert both.sampled.diverged_at is None
    # noise blurs the sharp end of the tent's support: further away than the floor of the hard one
    assert both.sampled.dstsp.value > 2 * both.hard.dstsp.value
    # sampled gates seldom differ from the hard ones here, and |J| = 1.7 in both regions
    assert both.sampled.lyapunov.largest == pytest.approx(np.log(1.7), rel=1e-9)
    seen = quantities_of_interest(
        model, reference, standardizer=SCALE, dt=1.0, discard=100, observation_noise=True
    )
    # observation noise of 0.5 * 3 raw units on top
    extra = seen.generated - both.sampled.generated
    assert extra.std() == pytest.approx(1.5, rel=0.05)


def test_the_sampled_trajectory_is_the_models_own():
    model = PALRNN(_tent(), 0.02, 0.1, 0.02)
    reference = model.drift.rollout([0.2], 500).states
    result = quantities_of_interest(model, reference, discard=10, seed=4)
    sample = model.sample(reference[0], 510, seed=4)
    np.testing.assert_array_equal(result.states, sample.states[10:])


def test_a_diverging_model_is_flagged_and_has_no_numbers():
    model = ALRNN([1.5], [[0.0]], [0.0], [[1.0]], 0)
    result = quantities_of_interest(model, np.sin(np.arange(200.0)) + 2.0, discard=20)
    # 2 * 1.5^t > 1e10 first at t = 56
    assert result.diverged_at == 56
    assert len(result.generated) == 36
    assert result.dstsp is None
    assert result.lyapunov is None
    assert "diverged after 56 steps" in repr(result)
    # in the transient, too, of which nothing is kept
    assert quantities_of_interest(model, np.sin(np.arange(200.0)) + 2.0, discard=100).diverged_at == 56


def test_counterparts_need_a_palrnn():
    with pytest.raises(ValueError, match="model must be a PALRNN"):
        stochastic_counterparts(_tent(), np.sin(np.arange(50.0)))


def test_the_exponent_comes_from_the_same_start_and_length():
    model = PALRNN(_tent(), 0.02, 0.1, 0.3)
    reference = model.drift.rollout([0.2], 300).states
    result = quantities_of_interest(
        PALRNN(_tent(1.2), 0.01, 0.1, 0.02), reference, discard=10, seed=3, dt=1.0
    )
    again = lyapunov_spectrum(
        PALRNN(_tent(1.2), 0.01, 0.1, 0.02), reference[0], steps=300, discard=10, k=1, seed=3, dt=1.0
    )
    np.testing.assert_array_equal(result.lyapunov.exponents, again.exponents)
