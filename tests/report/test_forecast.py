"""The fan chart shows the bands of the forecast, and says how long it is of use."""

from __future__ import annotations

import base64
import dataclasses

import numpy as np
import pytest
from example_runs import changed_run, example_run

from palrnn.inference import Forecast
from palrnn.invariants import Fate, LyapunovSpectrum, Viability
from palrnn.report.registry import headlines
from palrnn.report.sections.forecast import exponent, fan_chart, forecast


def drawn(trace):
    return np.frombuffer(base64.b64decode(trace["y"]["bdata"]), trace["y"]["dtype"])


def test_bands_and_median_are_those_of_the_paths():
    run = example_run()
    figure = fan_chart(run, run.fan, "fan")
    first = [trace for trace in figure.traces if trace["yaxis"] == "y"]
    low, high, lower, upper, middle, data = (drawn(trace) for trace in first)
    paths = run.fan.forecast.paths[:, :, 0]
    for values, q in ((low, 0.05), (high, 0.95), (lower, 0.25), (upper, 0.75), (middle, 0.5)):
        np.testing.assert_allclose(values, np.quantile(paths, q, axis=0), rtol=1e-6)  # float32
    np.testing.assert_allclose(data, np.r_[run.fan.past[:, 0], run.fan.truth[:, 0]], rtol=1e-6)
    assert [trace["name"] for trace in first if trace["showlegend"]] == [
        "90 % band", "50 % band", "median", "data",
    ]  # fmt: skip
    assert len(figure.traces) == 3 * 6
    assert "the 90 % band holds 88" in figure.summary


def test_the_dotted_line_is_where_the_mean_leaves_the_truth():
    run = example_run()
    figure = fan_chart(run, run.fan, "fan")
    scale = np.sqrt(run.reference.var(axis=0).sum())
    error = np.linalg.norm(run.fan.forecast.paths.mean(axis=0) - run.fan.truth, axis=1)
    last = int(np.argmax(error > 0.4 * scale)) if (error > 0.4 * scale).any() else 200
    assert figure.layout["shapes"][1]["x0"] == pytest.approx(last * run.dt)


def test_no_axis_follows_paths_that_run_away():
    run = example_run()
    paths = run.fan.forecast.paths * np.geomspace(1.0, 1e9, 200)[None, :, None]
    paths[:5, 100:] = np.nan
    figure = fan_chart(run, dataclasses.replace(run.fan, forecast=Forecast(paths)), "fan")
    for i, name in enumerate(("yaxis", "yaxis2", "yaxis3")):
        low, high = figure.layout[name]["range"]
        assert high - low < 2 * np.ptp(run.reference[:, i])
    assert max(np.nanmax(np.abs(drawn(trace))) for trace in figure.traces) < 1e3
    assert "5 of 40 paths diverge." in figure.summary


def test_it_says_whether_parameters_are_known_or_drawn():
    run = example_run()
    for varies, words in [
        (("state", "process noise"), "Parameters are taken for known: what the data leave open is not in"),
        (
            ("state", "parameters (8 models by reflected)"),
            "They differ by parameters (8 models by reflected)",
        ),
    ]:
        told = Forecast(run.fan.forecast.paths, varies)
        figure = fan_chart(run, dataclasses.replace(run.fan, forecast=told), "fan")
        assert words in figure.summary


def test_many_columns_are_forecast_by_components():
    run = example_run()
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((3, 20))
    wide = dataclasses.replace(
        run,
        columns=tuple(f"c{i}" for i in range(20)),
        reference=run.reference @ mix,
        fan=dataclasses.replace(
            run.fan,
            past=run.fan.past @ mix,
            truth=run.fan.truth @ mix,
            forecast=Forecast(run.fan.forecast.paths @ mix),
        ),
    )
    figure = fan_chart(wide, wide.fan, "fan")
    assert figure.layout["yaxis"]["title"]["text"] == "PC 1"
    assert "principal components (PC) of the 20 standardised columns" in figure.summary
    assert figure.downloads[0].content.startswith("ahead,PC 1 data,")


def test_why_there_is_no_forecast_is_said():
    run = dataclasses.replace(example_run(), fan="the filter loses the model")
    (note,) = forecast([run])
    assert note.words == "No forecast: the filter loses the model."
    assert forecast([dataclasses.replace(run, fan="")]) == ()


def own_exponent(largest, error, alive=True):
    run = example_run()
    card = run["invariants"]
    spectrum = LyapunovSpectrum(np.array([largest]), np.array([error]), np.ones((1, 1)), np.array([90.0]), 3)
    fate = Fate("moves on") if alive else Fate("rests", 20)
    return changed_run(
        run,
        invariants=dataclasses.replace(
            card,
            hard=dataclasses.replace(card.hard, lyapunov=spectrum),
            lyapunov=None,
            reference_exponents=None,
            viability=Viability((fate,) * 10, 1000),
        ),
    )


def test_lyapunov_times_are_counted_only_by_a_positive_exponent():
    label = "Forecasts are of use for"
    known = next(card for card in headlines(example_run()) if card.label == label)
    # 310 steps of 0.01 at the true exponent 0.9056
    assert (known.value, known.unit) == ("2.8", "Lyapunov times")
    assert "by the true exponent" in known.sentence
    own = next(card for card in headlines(own_exponent(0.6, 0.1)) if card.label == label)
    assert (own.value, own.unit) == ("1.9", "Lyapunov times")
    for largest, error, alive in ((-0.1, 0.01, True), (0.1, 0.1, True), (0.5, 0.1, False)):
        run = own_exponent(largest, error, alive)
        assert exponent(run["invariants"]) is None
        card = next(card for card in headlines(run) if card.label == label)
        assert (card.value, card.unit) == ("310", "steps")


@pytest.mark.parametrize(
    ("largest", "error", "alive"), [(-0.1, 0.01, True), (0.1, 0.1, True), (0.5, 0.1, False)]
)
def test_only_a_lasting_positive_exponent_is_called_chaotic(largest, error, alive):
    words = [card.sentence for card in headlines(own_exponent(largest, error, alive))[:4]]
    assert not any("the model is chaotic" in sentence for sentence in words)
    assert any("the model is chaotic" in card.sentence for card in headlines(own_exponent(0.5, 0.1)))
