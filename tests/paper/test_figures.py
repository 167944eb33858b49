"""Figures of the studies: what is withdrawn says so, marks have intervals, lines differ without colour."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_claims import gap_table

from palrnn.paper.presets import load_preset
from palrnn.paper.studies.diagnostics import DiagnosticsStudy
from palrnn.paper.studies.gap.figures import estimators_figure, withdrawn
from palrnn.paper.studies.truth.figures import artefacts_figure, grouped_medians, particles
from palrnn.paper.studies.truth.listings import NAMES, SAMPLES, Estimates

SMOKE = load_preset("smoke")


def test_ancestors_under_the_exact_target_are_withdrawn_and_nothing_else() -> None:
    table = gap_table()
    exact = table.assign(target="exact")
    assert not withdrawn(table)
    assert withdrawn(exact)
    assert withdrawn(exact.assign(method="ancestors"))
    assert not withdrawn(exact.assign(method="gibbs"))


def test_estimators_that_are_withdrawn_are_named_as_such() -> None:
    table = gap_table()
    figure = estimators_figure(
        pd.concat([table, table.assign(variant="exact", target="exact"), table.assign(variant="more")])
    )
    entropy, gaps, negative = figure.axes
    for ax in (entropy, negative):
        assert [label.get_text() for label in ax.get_xticklabels()] == ["paper", "exact\n(withdrawn)", "more"]
    by_name = {line.get_label(): line for line in gaps.lines}
    assert by_name["exact (withdrawn)"].get_markerfacecolor() == "none"
    assert by_name["more"].get_markerfacecolor() != "none"


def test_marks_are_medians_of_models_with_like_entropy_and_have_intervals() -> None:
    rng = np.random.default_rng(0)
    entropy = pd.Series(rng.permutation(np.linspace(2.0, 6.0, 60)))
    values = 3.0 * entropy
    values[0] = np.nan
    marks = grouped_medians(entropy, values, 200)
    assert len(marks) == 6
    assert [at for at, _ in marks] == sorted(at for at, _ in marks)
    for at, found in marks:
        assert found.value == pytest.approx(3.0 * at)
        assert found.low < found.value < found.high
    assert len(grouped_medians(entropy[:7], values[:7], 200)) == 1
    assert grouped_medians(entropy[:1], values[:1], 200) == []


def test_artefacts_say_with_how_many_particles_each_entropy_was_measured() -> None:
    samples = gap_table()
    exact = samples.assign(entropy_bound=8.0)
    tables = {SAMPLES: samples, NAMES["paper"]: exact, NAMES["exact"]: exact}
    figure = artefacts_figure(Estimates(tables, "overlap50", 100, {}))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        "eight samples, paper's target, 64 particles",
        "closed forms, paper's target, 256 particles",
        "closed forms, exact target, 256 particles",
    ]
    assert particles(pd.concat([samples, exact])) == "64 or 256 particles"


def test_runs_of_the_filter_differ_without_colour_and_their_resampling_does_not_overlap() -> None:
    rows = [
        {"configuration": name, "particles": count, "step": step, "ess": 0.5, "resampled": step % 2 == 0}
        | {"entropy_bits": 3.0, "entropy_bound": float(np.log2(count))}
        for name in ("baseline", "full")
        for count in (256, 64)
        for step in range(1, 9)
    ]
    figure = DiagnosticsStudy.of(SMOKE).figures({"diagnostics": pd.DataFrame(rows)})["diagnostics"]
    ess, entropy, events = sorted(figure.axes, key=lambda ax: ax.get_ylabel())
    runs = [line for line in ess.lines if line.get_label().endswith("particles")]
    looks = {(line.get_linestyle(), line.get_marker()) for line in runs}
    assert len(looks) == len(runs) == 4
    # a number of particles has its line, in both configurations
    assert [line.get_linestyle() for line in runs] == ["-", "--", "-", "--"]
    heights = [set(np.atleast_1d(line.get_ydata())) for line in events.lines]
    assert all(len(height) == 1 for height in heights)
    assert len(set().union(*heights)) == 4
    assert sorted(text.get_text() for text in entropy.texts) == ["log2(256)", "log2(64)"]
