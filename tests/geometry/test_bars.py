"""Bars on the dynamics of models whose dynamics are known in closed form."""

import numpy as np
import pytest

from palrnn.geometry import Bars, LaplacePosterior, invariant_error_bars, laplace, model_bars
from palrnn.geometry.bars import draws_interval
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
        # 300 steps of a map that is not normal: the sum is exact, each by itself nearly
        total = found["exponent 1"] + found["exponent 2"]
        assert total == pytest.approx(np.log(np.abs(np.linalg.det(J))) / 0.5, rel=1e-9)
        assert found["exponent 1"] == pytest.approx(np.log(sizes[0]) / 0.5, abs=0.02)
        # all exponents are negative
        assert found["Kaplan-Yorke dimension"] == 0.0
    assert {"D_stsp", "D_H"} < set(bars.names)


class Refitted:
    """Stable linear maps, and refits of one of them that contract more."""

    model = ALRNN(np.zeros(1), [[0.95]], [0.5], np.eye(1), 0)
    models = tuple(ALRNN(np.zeros(1), [[slope]], [0.5], np.eye(1), 0) for slope in (0.9, 0.85))
    refits = (ALRNN(np.zeros(1), [[0.8]], [0.5], np.eye(1), 0), None)

    def sample(self, count, *, seed=0):
        return [self.models[k % 2] for k in range(count)]

    def refit_of(self, model):
        return self.refits[self.models.index(model)]


def test_figures_of_draws_with_refits_are_reflected_and_distances_are_not():
    reference = np.random.default_rng(0).standard_normal((300, 1))
    how = {"steps": 300, "discard": 50, "dt": 1.0}
    found = model_bars(Refitted(), reference, count=4, exponents=1, **how)
    table = {name: found.draws[:, k] for k, name in enumerate(found.names)}
    # the exponent of z -> s z + 1/2 is log s, its fixed point 1 / (2 - 2 s); without a refit there is none
    wanted = 2 * np.log(0.9) - np.log(0.8)
    np.testing.assert_allclose(table["exponent 1"], [wanted, np.nan] * 2, rtol=1e-9)
    np.testing.assert_allclose(table["fixed point 1 x1"], [2 / 0.2 - 1 / 0.4, np.nan] * 2, rtol=1e-9)
    np.testing.assert_allclose(table["fixed point 1 |eigenvalue 1|"], [0.9**2 / 0.8, np.nan] * 2, rtol=1e-9)
    assert np.isfinite(table["D_stsp"]).all()
    assert found.values[found.names.index("exponent 1")] == pytest.approx(np.log(0.95), rel=1e-9)
    bars = invariant_error_bars(Refitted(), reference, draws=4, **how)
    np.testing.assert_allclose(bars.lyapunov, [wanted, np.nan] * 2, rtol=1e-9)
    assert bars.diverged == 0


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
