"""Forcing strength: which models there are, their spectra, and what table and figure make of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from palrnn.forcing import TrainConfig
from palrnn.geometry import itf_fisher
from palrnn.model import Forcing, checkpoint_from_bytes
from palrnn.paper.fidelity import fidelity_page
from palrnn.paper.presets import load_preset
from palrnn.paper.series import training_series
from palrnn.paper.studies.forcing import RANKS, ForcingStudy, Unit, effective_rank, measure_spectra
from palrnn.paper.studies.forcing.figures import spectra_figure

SMOKE = load_preset("smoke")


def test_the_sweep_goes_from_strict_forcing_to_nearly_none() -> None:
    units = ForcingStudy.of(load_preset("paper")).units()
    forcings = {(unit.tau, unit.alpha) for unit in units}
    assert {(1, 1.0), (200, 1.0), (1, 0.005)} <= forcings
    assert len(units) == 4 * len(forcings)
    # full strength at every step is one end of both; the first row is where runs start
    ends = (Unit(1, 1.0, 0).forcing, Forcing.generalised(1.0))
    assert [forcing.strengths(5)[1:].tolist() for forcing in ends] == [[1.0] * 4] * 2


def test_models_of_the_curvature_study_are_shared_and_the_others_trained_in_the_same_way() -> None:
    study = ForcingStudy.of(SMOKE)
    shared, strict, weak = (study.model_task(Unit(*which, 0)) for which in ((8, 1.0), (1, 1.0), (1, 0.2)))
    assert [task.kind.name for task in (shared, strict, weak)] == ["checkpoint", "forced", "forced"]
    told = [TrainConfig.paper(**task.settings["training"]).forcing for task in (shared, strict, weak)]
    assert told == [Forcing.identity(8), Forcing.identity(1), Forcing.generalised(0.2)]
    # nothing that only this study needs joins the zoo
    assert study.regimes() == []


def test_spectra_are_taken_under_the_forcing_of_the_model(trained: dict[str, bytes]) -> None:
    study = ForcingStudy.of(SMOKE)
    x = training_series(SMOKE.data, 0.1, 0.1).test[: SMOKE.gap.length]
    drift = checkpoint_from_bytes(trained["model"]).drift
    for unit in (Unit(1, 0.2, 0), Unit(1, 1.0, 0)):
        found = measure_spectra(dict(study.spectra_task(unit).settings), trained)
        fisher = itf_fisher(drift, x, unit.forcing, 0.1)
        assert found["trace_itf"] == pytest.approx(float(np.trace(fisher)), rel=1e-12)
        values = found["eigenvalues_itf"]
        assert len(values) == len(found["eigenvalues_observed"]) == len(fisher) - found["null"]
        assert values == sorted(values, reverse=True)
        # five digits of each, and the ridge on top: a millionth of the mean eigenvalue
        assert values[:5] == pytest.approx(np.linalg.eigvalsh(fisher)[::-1][:5], rel=2e-4)
        assert found["largest_itf"] == pytest.approx(values[0], rel=1e-4)


def test_the_effective_rank_counts_directions_that_are_alike() -> None:
    assert effective_rank(np.array([2.0, 2.0, 2.0, 0.0, -5.0])) == pytest.approx(3.0)


def test_the_listing_goes_from_strict_to_free_and_names_what_q90_it_has() -> None:
    numbers = dict.fromkeys(("gap", "logdet_gap", "identifiable_q90", "overlap", "rank_itf"), 1.0)
    numbers |= dict.fromkeys(("rank_observed", "entropy_bits", "dstsp", "lyapunov", "alive"), 1.0)
    forced = [(16, 1.0), (1, 0.02), (1, 1.0), (1, 0.5)]
    rows = [{"tau": tau, "alpha": alpha, "seed": 0} | numbers for tau, alpha in forced]
    (listing,) = ForcingStudy.of(SMOKE).listings({"forcing": pd.DataFrame(rows)})
    assert [row[0] for row in listing.rows] == [
        "strict: full strength at every step",
        "strength 0.5 at every step",
        "strength 0.02 at every step",
        "every 16 steps",
    ]
    assert "q90, without null directions" in listing.columns


def test_spectra_are_drawn_from_strict_to_free_without_negative_eigenvalues() -> None:
    rows = [
        {"tau": tau, "alpha": alpha, "seed": seed, "rank": rank}
        | {"itf": 100.0 / rank * (seed + 1), "observed": 1.0 if rank < 100 else -1.0}
        for tau, alpha in ((1, 1.0), (16, 1.0), (1, 0.1), (1, 0.01))
        for seed in range(3)
        for rank in RANKS
    ]
    axes = spectra_figure(pd.DataFrame(rows)).axes
    assert [ax.get_title(loc="left") or ax.get_title() for ax in axes] == [
        "(a) teacher forcing",
        "(c) teacher forcing",
        "(b) likelihood",
        "(d) likelihood",
    ]
    intervals, strengths, likelihood, _ = axes
    first = intervals.containers[0]
    assert first.lines[0].get_xydata().tolist() == [[1.0, 200.0], [16.0, 200.0]]
    # strict forcing is on the left in both columns
    assert strengths.get_xlim()[0] > strengths.get_xlim()[1]
    assert intervals.get_xlim()[0] < intervals.get_xlim()[1]
    assert len(strengths.containers[0].lines[0].get_xydata()) == 3
    drawn = {each.get_label(): len(each.lines[0].get_xydata()) for each in likelihood.containers}
    assert drawn["1"] == 2
    assert drawn["100"] == 0
    marks = {each.lines[0].get_marker() for each in intervals.containers}
    assert len(marks) == len(intervals.containers)


def test_a_part_of_the_page_may_have_several_pictures() -> None:
    empty = {"verdicts": {"agrees": 0, "differs": 0, "cannot be compared": 0}, "claims": [], "findings": []}
    listing = {"part": "What the paper leaves open", "title": "T", "words": "w", "columns": ["c"], "rows": []}
    summary = empty | {"settings_are_the_papers": True, "scale": "paper", "computation": []}
    page = fidelity_page(summary | {"listings": [listing], "rivals": []}, "run", figures="figures")
    assert "](figures/spectra.png)" in page
    assert "](figures/front.png)" in page
    assert page.index("figures/spectra.png") < page.index("### T")
