"""Scores over starts stand beside their floor; error bars that were kept stand in tables."""

from __future__ import annotations

import dataclasses

import numpy as np
from example_runs import changed_run, example_run

from palrnn.invariants import StartScores
from palrnn.report.registry import headlines
from palrnn.report.sections.bars import bars_tables, interval, of_fixed_points
from palrnn.report.sections.invariants import invariants
from palrnn.report.sections.scores import scores

STARTS = StartScores(np.array([0.5, 0.9, 0.7, np.inf]), np.array([0.1, 0.3, 0.2, 1.0]), 9000)


def with_starts(name="lorenz"):
    run = example_run(name)
    return changed_run(run, invariants=dataclasses.replace(run["invariants"], over_starts=STARTS))


def test_every_start_its_median_and_the_floor_are_drawn():
    figure = scores([with_starts()])
    model = [trace for trace in figure.traces if trace["name"] == "model" and "xaxis" not in trace]
    line, marks, median = model
    assert line["x"] == [0.5, 0.9]
    assert marks["x"] == [0.5, 0.9, 0.7]
    assert median["x"] == [0.7]
    floor = next(t for t in figure.traces if t["name"] == "floor" and t["mode"] == "markers")
    np.testing.assert_array_equal(floor["x"], with_starts()["invariants"].dstsp_floor.values)
    assert "1 of 4 runs diverge and have no score" in figure.summary


def test_each_of_two_runs_has_its_rows():
    figure = scores([with_starts("one"), with_starts("other")])
    places = {place for trace in figure.traces for place in trace["y"]}
    assert places == {"one: model", "one: floor", "other: model", "other: floor"}
    assert figure.summary.startswith("one: model: 1 of 4")


def test_the_card_has_median_and_range_over_starts_length_and_floor():
    card = next(card for card in headlines(with_starts()) if card.label.endswith("D_stsp"))
    assert (card.value, card.unit) == ("0.800", "0.500 to diverged")
    assert "Median and range over 4 starts" in card.sentence
    assert "0.630 (floor; up to 2.13), over 3,000 steps" in card.sentence


BARS = {
    "method": "blocks",
    "coverage": 0.9,
    "models": 20,
    "figures": {
        "exponent 1": {"value": 0.88, "low": 0.81, "high": 0.97},
        "D_stsp": {"value": 0.7, "low": None, "high": None},
        "fixed point 1 x": {"value": 8.5, "low": 8.1, "high": 8.8},
    },
}


def test_kept_error_bars_stand_beside_the_numbers():
    run = dataclasses.replace(example_run(), bars=BARS)
    assert interval(run, "exponent 1") == (0.81, 0.97)
    assert interval(run, "D_stsp") is None
    assert interval(example_run(), "exponent 1") is None
    (table,) = bars_tables(run, of_fixed_points)
    assert table.rows == (("fixed point 1 x", "8.50", "8.10", "8.80"),)
    assert "90 % intervals over 20 models by blocks" in table.caption
    assert bars_tables(example_run(), of_fixed_points) == []
    tables = [block for block in invariants([run]) if getattr(block, "caption", "").startswith("lorenz")]
    assert tables[0].rows == (("exponent 1", "0.880", "0.810", "0.970"), ("D_stsp", "0.700", "–", "–"))
    card = next(card for card in headlines(run) if card.label.startswith("Largest"))
    assert card.unit == "0.810 to 0.970"
    assert "90 % interval over models by blocks" in card.sentence
