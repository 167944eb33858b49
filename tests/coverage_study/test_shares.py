"""How well a share is known."""

import numpy as np
import pytest
from scipy import optimize, stats

from palrnn.coverage.shares import wilson_interval


@pytest.mark.parametrize(("held", "count"), [(0, 8), (8, 8), (3, 20), (90, 100)])
def test_its_ends_are_where_the_score_test_rejects(held, count):
    share, z = held / count, stats.norm.ppf(0.975)
    low, high = wilson_interval(share, count)

    def score(p):
        return abs(share - p) - z * np.sqrt(p * (1 - p) / count)

    if held:
        assert low == pytest.approx(optimize.brentq(score, 1e-9, share - 1e-9), abs=1e-8)
    if held < count:
        assert high == pytest.approx(optimize.brentq(score, share + 1e-9, 1 - 1e-9), abs=1e-8)
    assert (low, high) == pytest.approx(stats.binomtest(held, count).proportion_ci(method="wilson"), abs=1e-9)


@pytest.mark.parametrize(("share", "count"), [(0.9, 8), (0.9, 100), (0.95, 20), (0.99, 20)])
def test_it_holds_the_truth_where_that_of_wald_does_not(share, count):
    held = np.arange(count + 1)
    odds = stats.binom.pmf(held, count, share)
    ends = np.array([wilson_interval(k / count, count) for k in held])
    inside = (ends[:, 0] <= share) & (share <= ends[:, 1])
    error = 1.96 * np.sqrt(held * (count - held) / count**3)
    wald = np.abs(held / count - share) <= error
    # exact sums over all outcomes: a discrete law cannot meet 95 % everywhere
    assert 0.9 < odds @ inside < 0.999
    assert odds @ wald < odds @ inside


def test_nothing_is_certain_after_a_few_tries():
    low, high = wilson_interval(1.0, 8)
    assert high == 1.0
    assert 0.6 < low < 0.7
