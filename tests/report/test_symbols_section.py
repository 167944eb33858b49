"""The graph of switching codes: where discs and arrows are drawn."""

from __future__ import annotations

from made_runs import seen, tent

from palrnn.report.sections.symbols import graph


def test_arrows_between_two_codes_stay_within_the_axes():
    figure = graph(seen(tent())["invariants"], "key")
    for axis, values in (("xaxis", "x"), ("yaxis", "y")):
        low, high = figure.layout[axis]["range"]
        drawn = [value for trace in figure.traces for value in trace[values]]
        assert low <= min(drawn) <= max(drawn) <= high
