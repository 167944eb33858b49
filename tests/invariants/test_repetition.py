"""Which series are cycles seen through noise."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn import lorenz63
from palrnn.data.systems import rossler_system
from palrnn.invariants.repetition import Repetition

_SEVEN = np.tile([[1.0], [-162.0], [-63.8], [-24.52], [-8.8], [-2.52], [-0.008]], (640, 1))


def _noisy(x, level):
    return x + level * x.std(axis=0) * np.random.default_rng(0).standard_normal(x.shape)


@pytest.mark.parametrize("level", [0.0, 0.05, 1.0])
def test_a_cycle_is_periodic_however_noisy_it_is_seen(level):
    flow = rossler_system(c=2.5).simulate(4000, dt=0.05, discard=5000)
    for series, period in ((_SEVEN, 7), (flow, 115)):
        found = Repetition(_noisy(series, level))
        assert found.periodic
        assert found.after(period)
        assert found.after(3 * period)
        assert not found.after(period // 2)


@pytest.mark.parametrize("level", [0.0, 0.05, 1.0])
def test_chaos_and_noise_are_not_periodic(level):
    rossler = rossler_system().simulate(4500, dt=0.05, discard=5000)
    for series in (lorenz63(4500, discard=2000), rossler):
        assert not Repetition(_noisy(series, level)).periodic
    noise = np.random.default_rng(1).standard_normal((4500, 20))
    assert not Repetition(noise).periodic
    assert not Repetition(np.concatenate([_noisy(rossler, level), noise], axis=1)).after(120)


def test_gaps_and_still_columns_are_passed_over():
    series = np.concatenate([_SEVEN, np.zeros_like(_SEVEN)], axis=1)
    series[::10, 0] = np.nan
    assert Repetition(series).after(7)
    assert not Repetition(series[:, 1:]).periodic
    assert not Repetition(series[:20]).periodic
