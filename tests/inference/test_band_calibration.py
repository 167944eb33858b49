"""Bands made as wide as they had to be: known factors are found, and coverage becomes the level."""

import numpy as np
import pytest

from palrnn.inference import BandCalibration, Forecast, hindcasts
from palrnn.model import ALRNN, PALRNN

STEPS, PATHS = 40, 400


def made(count, factor, seed):
    """Gaussian forecasts whose spread is the true one over ``factor``, which grows with the lead."""
    rng, found = np.random.default_rng(seed), []
    true = 0.1 + 0.05 * np.arange(STEPS)[:, None]
    for _ in range(count):
        middle = rng.standard_normal((STEPS, 2))
        paths = middle + true / factor[:, None] * rng.standard_normal((PATHS, STEPS, 2))
        found.append((Forecast(paths), middle + true * rng.standard_normal((STEPS, 2))))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("worst", [3.0, 0.5])
def test_the_factor_that_bands_lack_is_found_by_lead(worst):
    factor = np.linspace(1.0, worst, STEPS)
    found = BandCalibration.fit(made(200, factor, 0))
    # 200 forecasts of 2 coordinates and 7 or more leads: 2,800 factors, whose quantile is known to 1.5 %; but
    # leads within a fifth are taken together, and the factor changes by up to 14 % over them
    np.testing.assert_allclose(found.factors, factor, rtol=0.18)
    others = made(200, factor, 1)
    before, after = (
        np.mean([f(ahead).coverage(truth, 0.9) for ahead, truth in others], axis=(0, 2))
        for f in (lambda ahead: ahead, found)
    )
    assert abs(before[-10:].mean() - 0.9) > 0.08
    # 400 values at each of ten leads: 0.005, and the error of the factors
    assert after[:10].mean() == pytest.approx(0.9, abs=0.025)
    assert after[-10:].mean() == pytest.approx(0.9, abs=0.025)
    # a band of 50 % is scaled alike, and holds as much as it says, since both are Gaussian
    half = np.mean([found(ahead).coverage(truth, 0.5) for ahead, truth in others])
    assert half == pytest.approx(0.5, abs=0.03)


def test_forecasts_of_the_true_model_need_no_factor():
    turn = 0.97 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    model = PALRNN(ALRNN(np.zeros(2), turn, np.zeros(2), np.eye(2), 0), 0.2, 0.3, 0.0)
    x = model.sample(np.zeros(2), 3000, seed=1).observations
    x[100, 0] = np.nan
    found = hindcasts(model, x, 20, origins=60, seen=20, particles=4)
    assert len(found) == 60
    assert all(ahead.paths.shape == (200, 20, 2) and len(came) == 20 for ahead, came in found)
    np.testing.assert_array_equal(found[0][1], x[20:40])
    # 60 forecasts of two coordinates: a 90 % quantile of 120 widths is known to 8 %
    np.testing.assert_allclose(BandCalibration.fit(found).factors, 1.0, atol=0.25)
    narrow = PALRNN(model.drift, 0.1, 0.15, 0.0)
    factors = BandCalibration.fit(hindcasts(narrow, x, 20, origins=60, seen=20, particles=4)).factors
    np.testing.assert_allclose(factors, 2.0, atol=0.5)


def test_forecasts_that_diverge_are_counted_as_ever_too_narrow():
    known, needed = made(40, np.ones(STEPS), 0), []
    gone = Forecast(np.full((PATHS, STEPS, 2), np.nan))
    found = BandCalibration.fit([*known, (gone, known[0][1])])
    for ahead, truth in known:
        low, middle, high = np.quantile(ahead.paths[:, 6:13], [0.05, 0.5, 0.95], axis=0)
        half = np.where(truth[6:13] > middle, high - middle, middle - low)
        needed.append(np.abs(truth[6:13] - middle) / half)
    # lead 10 looks at three to either side, of two coordinates: 14 values of the one that diverged come last
    needed = np.append(np.sort(needed, axis=None), np.full(14, np.inf))
    place = 0.9 * (1 + 1 / 41) * (len(needed) - 1)
    below, part = int(place), place % 1
    expected = (1 - part) * needed[below] + part * needed[below + 1]
    assert found.factors[9] == pytest.approx(expected, rel=1e-10)
    # where more than a tenth diverge no width holds 90 %: bands are infinite, and say so
    half = [(Forecast(np.where(np.arange(STEPS)[:, None] < 20, f.paths, np.nan)), x) for f, x in known[:8]]
    found = BandCalibration.fit([*known, *half])
    assert np.isfinite(found.factors[:15]).all()
    assert np.isinf(found.factors[25:]).all()
    wide = found(known[0][0])
    low, high = wide.band(0.9)
    assert np.isneginf(low[25:]).all()
    assert np.isposinf(high[25:]).all()
    assert wide.coverage(known[0][1], 0.9)[25:].all()
    assert np.isposinf(wide.crps(known[0][1])[25:]).all()
    assert np.isfinite(wide.mean[:15]).all()
    assert np.isnan(wide.mean[25:]).all()
    assert wide.diverged == 0
    # what was not seen asks for nothing
    unseen = BandCalibration.fit([*known, *((gone, np.full((STEPS, 2), np.nan)) for _ in range(40))])
    assert np.isfinite(unseen.factors).all()


def test_what_it_says_and_refuses():
    found = BandCalibration.fit(made(5, np.ones(STEPS), 0))
    assert repr(found).startswith("BandCalibration(90% bands ")
    short = Forecast(np.zeros((3, 4, 2)))
    assert found(short).paths.shape == (3, 4, 2)
    with pytest.raises(ValueError, match="forecast must have at most 40 steps"):
        found(Forecast(np.zeros((3, 41, 2))))
    with pytest.raises(ValueError, match="made must be forecasts of one length"):
        BandCalibration.fit([])
    with pytest.raises(ValueError, match="truth must have shape"):
        BandCalibration.fit([(short, np.zeros((3, 2)))])
    with pytest.raises(ValueError, match="level must be"):
        BandCalibration.fit(made(2, np.ones(STEPS), 0), level=1.5)
    # bands without width hold nothing, whatever the factor
    np.testing.assert_array_equal(BandCalibration.fit([(short, np.ones((4, 2)))]).factors, 1.0)
