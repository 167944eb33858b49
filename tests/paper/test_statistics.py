"""Rank statistics against SciPy, closed forms and known coverage."""

from __future__ import annotations

import math
from inspect import signature

import numpy as np
import pytest
from scipy import stats

from palrnn.paper.statistics import association, bootstrap, partial_spearman, spearman, superiority


def correlated(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    control = rng.choice([0.1, 0.3, 0.5], n)
    a = control + 0.2 * rng.standard_normal(n)
    b = np.exp(control) + 0.1 * a + 0.1 * rng.standard_normal(n)
    return a, b, control


def test_spearman_is_scipys() -> None:
    a, b, _ = correlated(60, 0)
    expected = stats.spearmanr(a, b)
    assert spearman(a, b) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
    assert spearman(a, np.exp(a)) == pytest.approx((1.0, 0.0))


def test_a_constant_has_no_correlation() -> None:
    assert math.isnan(spearman(np.ones(5), np.arange(5.0))[0])
    assert math.isnan(partial_spearman(np.arange(5.0), np.arange(5.0) ** 2, np.arange(5.0)))


@pytest.mark.parametrize("seed", range(5))
def test_partial_r_is_the_closed_form_of_rank_correlations(seed: int) -> None:
    a, b, control = correlated(60, seed)
    ab, ac, bc = (stats.spearmanr(*pair).statistic for pair in ((a, b), (a, control), (b, control)))
    closed = (ab - ac * bc) / math.sqrt((1 - ac**2) * (1 - bc**2))
    assert partial_spearman(a, b, control) == pytest.approx(closed, abs=1e-12)


def test_partial_r_given_two_others_is_read_off_the_inverse_of_the_rank_correlations() -> None:
    a, b, first = correlated(60, 1)
    second = first + np.random.default_rng(8).standard_normal(60)
    inverse = np.linalg.inv(stats.spearmanr(np.column_stack([a, b, first, second])).statistic)
    closed = -inverse[0, 1] / math.sqrt(inverse[0, 0] * inverse[1, 1])
    assert partial_spearman(a, b, first, second) == pytest.approx(closed, abs=1e-12)


def test_too_little_to_associate_is_not_a_number() -> None:
    found = association([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    assert np.isnan([*found.spearman, found.p, *found.partial]).all()
    assert np.isnan(bootstrap([], np.median)).all()


def test_partial_r_sees_through_a_common_cause() -> None:
    rng = np.random.default_rng(3)
    control = np.repeat([0.1, 0.3, 0.5], 2000)
    a, b = control + 0.1 * rng.standard_normal(6000), control + 0.1 * rng.standard_normal(6000)
    assert spearman(a, b)[0] > 0.6
    # the ranks are not linear in each other, so a little remains
    assert abs(partial_spearman(a, b, control)) < 0.1


def test_the_interval_of_a_correlation_agrees_with_scipys_bootstrap() -> None:
    a, b, control = correlated(60, 1)
    found = association(a, b, control, resamples=1000)
    # SciPy before 1.15 calls it random_state
    generator = "rng" if "rng" in signature(stats.bootstrap).parameters else "random_state"
    scipys = stats.bootstrap(
        (a, b),
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="percentile",
        **{generator: np.random.default_rng(0)},
    ).confidence_interval
    # two percentiles of 1000 resamples each have a standard error of about 0.006 here
    assert found.spearman.low == pytest.approx(scipys.low, abs=0.03)
    assert found.spearman.high == pytest.approx(scipys.high, abs=0.03)
    assert found.partial.low < partial_spearman(a, b, control) < found.partial.high


def test_the_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(4).standard_normal(400)
    found = bootstrap(values, lambda rows: rows.mean(axis=1), resamples=4000)
    half = 1.96 * values.std() / math.sqrt(400)
    # the quantile of 4000 resamples is known to about 2 % of the half width
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_drawing_whole_groups_widens_the_interval_when_rows_repeat() -> None:
    values = np.random.default_rng(5).standard_normal(30)
    repeated, groups = np.repeat(values, 5), np.repeat(np.arange(30), 5)
    single = bootstrap(values, lambda rows: rows.mean(axis=1), seed=1)
    grouped = bootstrap(repeated, lambda rows: rows.mean(axis=1), groups=groups, seed=1)
    assert grouped == pytest.approx(single)
    naive = bootstrap(repeated, lambda rows: rows.mean(axis=1), seed=1)
    assert naive.high - naive.low < 0.6 * (grouped.high - grouped.low)


def test_superiority_is_the_mann_whitney_statistic_and_sees_through_strata() -> None:
    rng = np.random.default_rng(3)
    values, chosen = rng.integers(0, 8, 60).astype(float), rng.random(60) < 0.4
    u = stats.mannwhitneyu(values[chosen], values[~chosen]).statistic
    assert superiority(values, chosen).value == pytest.approx(u / (chosen.sum() * (~chosen).sum()), rel=1e-12)
    # a stratum that raises both the value and the chance of being chosen, and nothing else
    stratum = np.repeat([0, 1], 200)
    chosen = rng.random(400) < np.where(stratum, 0.8, 0.2)
    values = stratum + rng.random(400)
    assert superiority(values, chosen).low > 0.6
    within = superiority(values, chosen, stratum)
    assert within.low < 0.5 < within.high
    one = bootstrap(
        np.column_stack([values, chosen]),
        lambda stack: np.array(
            [superiority(rows[:, 0], rows[:, 1] > 0, resamples=1).value for rows in stack]
        ),
        resamples=50,
    )
    assert superiority(values, chosen, resamples=50) == pytest.approx(one)
    assert np.isnan(superiority([1.0, 2.0], [True, True]).value)


def test_the_same_seed_gives_the_same_interval() -> None:
    a, b, control = correlated(30, 2)
    assert association(a, b, control, resamples=50) == association(a, b, control, resamples=50)


def test_wrong_input_is_named() -> None:
    with pytest.raises(ValueError, match="a must have at least 3 entries"):
        spearman([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"groups must have shape \(3,\)"):
        bootstrap(np.ones(3), lambda rows: rows.mean(axis=1), groups=[1, 2])
