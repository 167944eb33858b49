"""Bars on the dynamics of models whose dynamics are known in closed form."""

import numpy as np
import pytest

from palrnn.geometry import Bars, LaplacePosterior, laplace, model_bars
from palrnn.geometry.bars import draws_interval
from palrnn.geometry.reflection import reflected
from palrnn.model import ALRNN


def linear_posterior():
    model = ALRNN(np.zeros(2), [[0.8, 0.2], [-0.2, 0.7]], [0.1, 0.2], np.eye(2), 0)
    return laplace(model, 1e4 * np.eye(8), prior_std=0.5)


@pytest.fixture(scope="module")
def bars():
    reference = np.random.default_rng(0).standard_normal((400, 2))
    settings = {"steps": 300, "discard": 50, "dt": 0.5, "columns": ("a", "b")}
    return model_bars(linear_posterior(), reference, count=5, exponents=2, seed=3, **settings)


def test_figures_of_linear_models_are_their_closed_forms(bars):
    posterior = linear_posterior()
    models = [posterior.model, *posterior.sample(5, seed=3)]
    for figures, model in zip([bars.values, *bars.draws], models, strict=True):
        found, J = dict(zip(bars.names, figures, strict=True)), model.W + np.diag(model.A)
        sizes = np.sort(np.abs(np.linalg.eigvals(J)))[::-1]
        point = np.linalg.solve(np.eye(2) - J, model.h)
        np.testing.assert_allclose([found["fixed point 1 a"], found["fixed point 1 b"]], point, rtol=1e-9)
        np.testing.assert_allclose(found["fixed point 1 |eigenvalue 1|"], sizes[0], rtol=1e-9)
        # a turn of this angle per step; of the pair both are told the same
        angle = np.abs(np.angle(np.linalg.eigvals(J))).max()
        turns = [found[f"fixed point 1 angle of eigenvalue {k}"] for k in (1, 2)]
        np.testing.assert_allclose(turns, angle, rtol=1e-9)
        # 300 steps of a map that is not normal: the sum is exact, each by itself nearly
        total = found["exponent 1"] + found["exponent 2"]
        assert total == pytest.approx(np.log(np.abs(np.linalg.det(J))) / 0.5, rel=1e-9)
        assert found["exponent 1"] == pytest.approx(np.log(sizes[0]) / 0.5, abs=0.02)
        # all exponents are negative
        assert found["Kaplan-Yorke dimension"] == 0.0
    assert {"D_stsp", "D_H"} < set(bars.names)


class Refitted:
    """Maps z -> s z + 1/2, whose exponent is log s and whose fixed point 1 / (2 - 2 s), and refits of two."""

    slopes, again = (0.9, 0.85, 0.88), (0.8, 0.77, np.nan)

    def __init__(self):
        self.model, *models = (self.map(slope) for slope in (0.95, *self.slopes))
        self.models = tuple(models)
        self.refits = tuple(None if np.isnan(slope) else self.map(slope) for slope in self.again)

    def map(self, slope):
        return ALRNN(np.zeros(1), [[slope]], [0.5], np.eye(1), 0)

    def sample(self, count, *, seed=0):
        return list(self.models[:count])

    def refit_of(self, model):
        return self.refits[self.models.index(model)]


def shifted(first, again):
    """Draws less the middle of what two refits miss by, spread by the error of that."""
    (one, two), first = again - first[:2], np.array(first)
    off, error = (one + two) / 2, 1.2533 * 1.4826 * abs(one - two) / 2 / np.sqrt(2)
    mean, spread = first.mean(), first.std(ddof=1)
    return mean - off + (first - mean) * np.sqrt(spread**2 + error**2) / spread


def test_what_refits_miss_by_is_taken_off_figures_and_distances_stay():
    reference = np.random.default_rng(0).standard_normal((300, 1))
    found = model_bars(Refitted(), reference, count=3, exponents=1, steps=300, discard=50, dt=1.0)
    table = {name: found.draws[:, k] for k, name in enumerate(found.names)}
    slopes, again = np.array(Refitted.slopes), np.array(Refitted.again[:2])
    logs = shifted(np.log(slopes), np.log(again))
    np.testing.assert_allclose(table["exponent 1"], logs, rtol=1e-9)
    np.testing.assert_allclose(table["fixed point 1 |eigenvalue 1|"], np.exp(logs), rtol=1e-9)
    points = shifted(1 / (2 - 2 * slopes), 1 / (2 - 2 * again))
    np.testing.assert_allclose(table["fixed point 1 x1"], points, rtol=1e-9)
    assert np.isfinite(table["D_stsp"]).all()
    assert found.values[found.names.index("exponent 1")] == pytest.approx(np.log(0.95), rel=1e-9)


def test_intervals_hold_where_models_share_an_error_and_not_if_they_are_scaled():
    # an estimator that is 0.3 too low, with an error of 0.15 by the data and another of each model
    rng, count, held, plain = np.random.default_rng(0), 1000, {0.7: 0, 1.0: 0, 1.5: 0}, 0
    for _ in range(count):
        first = -0.3 + 0.15 * rng.standard_normal() + 0.15 * rng.standard_normal(8)
        again = first - 0.3 + 0.15 * rng.standard_normal(8)
        draws = reflected(first[:, None], again[:, None])[:, 0]
        for factor in held:
            low, high = draws_interval(draws.mean() + factor * (draws - draws.mean()), 0.9)
            held[factor] += low <= 0.0 <= high
        low, high = draws_interval(first, 0.9)
        plain += low <= 0.0 <= high
    # the error of a share of 1,000 is 0.01
    assert 0.87 < held[1.0] / count < 0.95
    assert held[0.7] / count < 0.85
    assert held[1.5] / count > 0.97
    assert plain / count < 0.6


def test_the_plain_form_gives_the_same_back(bars):
    values = bars.to_dict()
    again = Bars.from_dict(values)
    np.testing.assert_array_equal(again.draws, bars.draws)
    assert again.names == bars.names
    figure = values["figures"]["exponent 1"]
    assert (figure["low"], figure["high"]) == bars.interval("exponent 1")
    assert figure["low"] < figure["value"] < figure["high"]
    assert "exponent 1" in repr(bars)


def test_what_is_added_and_what_is_missing():
    def extra(model):
        return {"first": float(model.W[0, 0])} if model.W[0, 0] > 0.8 else {}

    reference = np.random.default_rng(0).standard_normal((100, 2))
    found = model_bars(linear_posterior(), reference, count=12, steps=50, discard=0, extra=extra)
    column = found.draws[:, found.names.index("first")]
    assert 0 < np.isnan(column).sum() < 12
    assert np.nanmin(column) > 0.8
    assert isinstance(linear_posterior(), LaplacePosterior)


@pytest.mark.parametrize("count", [5, 10, 39, 40, 200])
def test_an_interval_holds_one_more_draw_as_often_as_it_says(count):
    rng = np.random.default_rng(count)
    inside = {0.5: 0, 0.9: 0}
    for _ in range(2000):
        draws, one = rng.standard_normal(count), rng.standard_normal()
        for level in inside:
            low, high = draws_interval(draws, level)
            inside[level] += low < one < high
    for level, number in inside.items():
        # binomial, three standard errors
        assert number / 2000 == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 2000))


def test_no_interval_where_half_of_the_draws_have_no_answer():
    draws = np.array([1.0, 2.0, 3.0, np.nan, np.nan, np.nan, np.nan])
    assert np.isnan(draws_interval(draws, 0.9)).all()
    assert np.isfinite(draws_interval(draws[:6], 0.9)).all()
    assert np.isnan(draws_interval(np.array([]), 0.9)).all()


def test_errors_name_the_argument(bars):
    with pytest.raises(ValueError, match="name must be one of"):
        bars.interval("luck")
    with pytest.raises(ValueError, match="coverage must be"):
        bars.interval("exponent 1", 1.5)
    with pytest.raises(ValueError, match="posterior must be"):
        model_bars(3, np.zeros((50, 2)))
    with pytest.raises(ValueError, match="count must be"):
        model_bars(linear_posterior(), np.zeros((50, 2)), count=1)
