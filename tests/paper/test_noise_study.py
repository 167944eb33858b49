"""Start noise: fits that are done again, long runs that ways share, and counts beyond the spread."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.paper.presets import load_preset
from palrnn.paper.studies.evidence import tune_model
from palrnn.paper.studies.noise import (
    NoiseStudy,
    Unit,
    Way,
    climb_again,
    fates_columns,
    fit_model_noise,
    measure_fates,
)
from palrnn.paper.studies.noise.figures import front_figure
from palrnn.paper.studies.noise.listings import fits_words, front, lengths_listing, ways_listing

SMOKE = load_preset("smoke")
FITTED, TUNED, UNTUNED = "noise at its maximum", "full, ridge per window", "untuned"


def units() -> dict[str, Unit]:
    """The units of the first start by the name of their way."""
    study = NoiseStudy.of(SMOKE)
    return {unit.way.name: unit for unit in study.units() if unit.start == SMOKE.noise.starts[0]}


def test_a_fit_is_done_again_from_where_it_ended_and_says_whether_it_had_converged(
    trained: dict[str, bytes],
) -> None:
    again = NoiseStudy.of(SMOKE).tuning_task(units()[FITTED])
    first = again.needs["model"]
    assert (first.kind.name, again.kind.name) == ("fit", "climb")
    assert again.settings["fit"] == first.settings["fit"] | {"step": 0.1, "evaluations": 200}
    short = dict(first.settings) | {"fit": first.settings["fit"] | {"evaluations": 4}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it was cut short is what is looked for
        results = [fit_model_noise(settings, trained) for settings in (short, dict(first.settings))]
    notes = [checkpoint_from_bytes(result).training["fit"] for result in results]
    assert [note["converged"] for note in notes] == [False, True]
    assert notes[0]["evaluations"] == 4
    climbed = [climb_again(dict(again.settings), {"model": result}) for result in results]
    after = [checkpoint_from_bytes(result).training["fit"] for result in climbed]
    assert all(note["converged"] for note in after)
    # the one that was cut short had some way to go, the other at most a few times the tolerance of 0.02
    assert after[0]["moved"] > 3 * after[1]["moved"]
    assert after[1]["moved"] < 0.1
    models = [checkpoint_from_bytes(result).model for result in climbed]
    assert all(isinstance(model, PALRNN) for model in models)
    levels = np.array([[m.process_variances.mean(), m.observation_variances.mean()] for m in models])
    np.testing.assert_allclose(levels[0], levels[1], rtol=0.2)


def test_a_second_fit_needs_a_first() -> None:
    with pytest.raises(ValueError, match="again needs fit"):
        Way(name="x", saem={"configuration": "full"}, again={"step": 0.1})


def test_ways_that_leave_the_drift_share_its_long_runs(trained: dict[str, bytes]) -> None:
    study, named = NoiseStudy.of(SMOKE), units()
    tasks = {name: study.fates_task(unit) for name, unit in named.items()}
    assert tasks[UNTUNED].hash == tasks[FITTED].hash
    assert len({task.hash for task in tasks.values()}) == len(tasks) - 1
    # rightly so: fitting the noise leaves it to the last bit
    untuned = tune_model(dict(tasks[UNTUNED].needs["model"].settings), trained)
    fitted = fit_model_noise(dict(study.tuning_task(named[FITTED]).needs["model"].settings), trained)
    first, second = (checkpoint_from_bytes(result) for result in (untuned, fitted))
    assert (first.drift.theta == second.drift.theta).all()
    found = measure_fates(dict(tasks[UNTUNED].settings), {"model": untuned})
    assert found == measure_fates(dict(tasks[UNTUNED].settings), {"model": fitted})
    columns = fates_columns(found)
    assert columns["starts"] == len(found["dstsp"]) == SMOKE.survival.starts
    assert 0 <= columns["moves_on"] <= columns["starts"]
    assert columns["dstsp_low"] <= columns["dstsp_median"] <= columns["dstsp_high"]


def test_runs_that_move_on_are_counted_and_one_that_diverged_is_infinitely_far() -> None:
    fates = [{"outcome": outcome} for outcome in ("moves on", "rests", "moves on")]
    found = fates_columns({"fates": fates, "dstsp": [1.0, None, 3.0]})
    assert found == {"starts": 3, "moves_on": 2, "dstsp_median": 3.0, "dstsp_low": 1.0, "dstsp_high": np.inf}


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    evidence, distance = np.array([1.0, 2.0, 3.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 3.0, 3.0])
    assert front(evidence, distance).tolist() == [True, True, True, False, True]


def noise_table() -> pd.DataFrame:
    """Four models, one length: evidence, and lowest, median and highest D_stsp, by way.

    Of the tuned, by their order: better beyond the spread; better by the medians only; lost; more evidence
    and no better.
    """
    points = {
        UNTUNED: [(0.10, 2.0, 2.2, 2.4)] * 4,
        FITTED: [(0.50, 2.0, 2.2, 2.4)] * 4,
        TUNED: [(0.7, 1.0, 1.2, 1.9), (0.7, 1.0, 1.2, 2.1), (0.8, 9.0, 9.5, 13.0), (0.4, 2.0, 2.2, 2.4)],
    }
    rows = [
        {"process_std": 0.1, "observation_std": model, "length": 64, "way": way, "starts": 10}
        | {"start_process_std": start, "start_gate_std": start, "evidence": evidence - start}
        | {"dstsp_low": low, "dstsp_median": middle, "dstsp_high": high, "moves_on": 10 if low < 5 else 3}
        | {"fitted_process_std": 0.1, "lyapunov": 0.9}
        for start in (0.02, 0.1)
        for way, models in points.items()
        for model, (evidence, low, middle, high) in enumerate(models)
        # from the larger start nothing was fitted alone: no comparison
        if not (start == 0.1 and way == FITTED)
    ]
    return pd.DataFrame(rows)


def test_a_smaller_dstsp_counts_beyond_the_spread_of_both_and_the_untuned_stand_beside() -> None:
    listing = lengths_listing(noise_table(), [TUNED], FITTED, UNTUNED)
    (row,) = listing.rows
    cells = dict(zip(listing.columns, row, strict=True))
    assert row[:3] == [TUNED, "0.02, 0.02", "64"]
    assert cells["evidence (noise alone)"] == "0.680 (0.480)"
    assert cells["D_stsp (noise alone)"] == "1.70 (2.20)"
    assert cells["attractor kept"] == "3 of 4 (4 of 4)"
    assert cells["moves on from all starts"] == "3 of 4 (4 of 4)"
    assert cells["more evidence"] == "3 of 4 (0 of 4)"
    assert cells["more evidence and smaller D_stsp"] == "1 of 4 (0 of 4)"
    assert cells["larger D_stsp"] == "1 of 4 (0 of 4)"


def test_ways_have_the_median_range_over_starts_and_their_share_of_the_front() -> None:
    listing = ways_listing(noise_table(), 0.9, "Words.")
    cells = {(row[0], row[1]): dict(zip(listing.columns, row, strict=True)) for row in listing.rows}
    tuned = cells[TUNED, "0.02, 0.02"]
    assert tuned["D_stsp"] == "1.70 [1.50, 2.25]"
    assert tuned["moves on"] == "3 of 4"
    # the fitted noise beats it for the fourth model, and is better in D_stsp, not in evidence, for the third
    assert tuned["front"] == "75%"
    assert cells[FITTED, "0.02, 0.02"]["front"] == "50%"
    assert listing.words.endswith("Words.")


def test_the_page_says_how_many_fits_converged_and_how_far_they_moved() -> None:
    table = pd.DataFrame({"fit_converged": [True, False, True, None], "fit_evaluations": [10, 60, 20, None]})
    table = table.assign(fit_moved=[0.01, 0.4, 0.02, None], fits=[2, 2, 2, None])
    words = fits_words(table)
    # a way that fits nothing is no fit, one that was not done again is one
    assert words.startswith("Of 3 fits")
    assert fits_words(table.assign(fits=[2, 2, 2, 1])).startswith("3 of 4 fits of the noise were done again")
    assert "Of 3 fits of the noise 2 converged" in words
    assert "after 20 passes" in words
    assert "40.0% at most" in words
    assert fits_words(table.drop(columns="fit_converged")) == ""


def test_the_page_says_what_is_computed_with_less_than_in_the_evidence_study() -> None:
    words = NoiseStudy.of(load_preset("paper")).effort()
    assert "2 paths of 64 particles in 40 windows" in words
    assert "(the evidence study 8, 256 and 80)" in words
    assert "fitted on 20 windows with 64 particles" in words
    assert "40 held-out windows (120 there)" in words


def test_there_is_a_panel_for_each_length_with_the_front_of_the_medians() -> None:
    table = noise_table()
    figure = front_figure(pd.concat([table, table.assign(length=16)]))
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:2] == ["windows of 16 steps", "windows of 64 steps"]
    (line,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    # the tuned medians from the smaller start beat all others in both
    np.testing.assert_allclose(line.get_xydata(), [[1.7, 0.0], [1.7, 0.68], [2.2, 0.68]], atol=1e-12)
    marks = {(c.lines[0].get_marker(), c.lines[0].get_markerfacecolor()) for c in figure.axes[0].containers}
    assert len(marks) == len(figure.axes[0].containers) == 5
