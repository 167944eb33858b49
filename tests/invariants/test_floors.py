from __future__ import annotations

import numpy as np
import pytest
from oracles.plain_invariants import dense_dstsp

from palrnn import dstsp_floor, lorenz63, spectrum_floor
from palrnn.data.systems import lorenz63_system


def test_the_floor_of_a_system_is_the_distance_of_independent_stretches():
    floor = dstsp_floor(lorenz63_system(), length=1500, pairs=6, seed=3)
    # another route: the brute-force distance of stretches that this test draws itself
    values = [
        dense_dstsp(lorenz63(1500, seed=900 + i), lorenz63(1500, seed=800 + i), 30, 1e-5) for i in range(6)
    ]
    # medians of six draws whose quartiles are a factor of two apart
    assert 0.4 < floor.median / np.median(values) < 2.5
    assert floor.low <= floor.median <= floor.high


def test_the_lorenz_floor_at_the_papers_length_is_far_from_zero():
    floor = dstsp_floor(lorenz63_system(), length=9000, pairs=60)
    assert 0.6 < floor.median < 1.3
    assert floor.low > 0.1


def test_a_series_is_cut_into_stretches_that_do_not_overlap():
    x = lorenz63(4000)
    floor = dstsp_floor(x, length=2000)
    expected = {dense_dstsp(a, b, 30, 1e-5) for a, b in ((x[:2000], x[2000:]), (x[2000:], x[:2000]))}
    np.testing.assert_allclose(sorted(floor.values), sorted(expected), rtol=1e-9)


def test_longer_stretches_have_a_lower_floor():
    short = dstsp_floor(lorenz63_system(), length=1000, pairs=10)
    long = dstsp_floor(lorenz63_system(), length=20_000, pairs=10)
    assert long.median < 0.5 * short.median
    assert spectrum_floor(lorenz63_system(), length=9000, pairs=10).high < 0.2


def test_the_same_seed_gives_the_same_floor():
    x = lorenz63(5000)
    a, b = (dstsp_floor(x, length=500, pairs=5, seed=s).values for s in (1, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, dstsp_floor(x, length=500, pairs=5, seed=2).values)


def test_a_series_too_short_is_refused():
    with pytest.raises(ValueError, match="source must hold two stretches of length=9000, has 10000 steps"):
        dstsp_floor(lorenz63(10_000))


def test_stretches_in_a_gap_are_left_out_of_floors():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1000, 2))
    x[200:400] = np.nan
    whole = np.concatenate([x[:200], x[400:]])
    for floor in (dstsp_floor, spectrum_floor):
        found, same = (floor(each, length=200, pairs=50).values for each in (x, whole))
        np.testing.assert_array_equal(np.sort(found), np.sort(same))
    x[:800] = np.nan
    with pytest.raises(ValueError, match="source must hold two stretches of length=200 to compare"):
        dstsp_floor(x, length=200)


def test_stretches_that_do_not_vary_are_left_out_of_floors():
    x = np.random.default_rng(0).standard_normal((1000, 2))
    x[:400, 1] = 3.0
    varying = dstsp_floor(x[400:], length=200, pairs=50).values
    np.testing.assert_array_equal(np.sort(dstsp_floor(x, length=200, pairs=50).values), np.sort(varying))
    with pytest.raises(ValueError, match="in which every column varies"):
        dstsp_floor(x[:500], length=200)


def test_a_stretch_too_short_between_gaps_for_a_delay_space_is_left_out():
    x = np.sin(np.arange(1200.0) / 7)[:, None] + 0.1 * np.random.default_rng(0).standard_normal((1200, 1))
    whole = dstsp_floor(x[300:], length=300, delay=17, pairs=50).values
    x[30:300] = np.nan
    np.testing.assert_array_equal(
        np.sort(dstsp_floor(x, length=300, delay=17, pairs=50).values), np.sort(whole)
    )
