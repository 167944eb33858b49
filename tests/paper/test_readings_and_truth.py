"""Readings, closed forms and fates: what the studies beyond the paper's own say of given tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_claims import gap_table

from palrnn import PALRNN, GeometryConfig, compare_geometries
from palrnn.model import checkpoint_from_bytes
from palrnn.paper.models import Regime
from palrnn.paper.presets import load_preset
from palrnn.paper.series import training_series
from palrnn.paper.studies.readings.comparison import best_reading, claims_by_reading, readings_listing
from palrnn.paper.studies.survival.listings import fates_listing, telling_listing
from palrnn.paper.studies.truth import TruthStudy, measure_truth
from palrnn.paper.studies.truth.listings import errors_listing, estimates, truth_listing

MODEL = ["process_std", "observation_std", "tau", "seed"]
SMOKE = load_preset("smoke")


def readings_table() -> pd.DataFrame:
    """Two readings: one with the paper's tables, one whose gaps are all a decade too high."""
    right = gap_table().drop(columns="variant").assign(reading="64 particles, nominal", mir=0.9)
    wrong = right.assign(reading="64 particles, per step", gap=right["gap"] + 1)
    return pd.concat([wrong, right])


def test_the_reading_with_most_agreements_is_the_best_and_is_said_to_be_chosen_after_looking() -> None:
    table = readings_table()
    claims = claims_by_reading(table, 50)
    assert best_reading(claims, claims) == "64 particles, nominal"
    assert best_reading(claims, ["64 particles, per step"]) == "64 particles, per step"
    made = readings_listing(table, dict.fromkeys(table["reading"].unique(), 180), 50)
    assert "64 particles, nominal (best, chosen after looking)" in made.columns
    (gaps,) = [row for row in made.rows if row[0].startswith("the gap ranges")]
    assert gaps[2].endswith("**differs**")
    assert gaps[3].endswith(": agrees")
    few = readings_listing(table.iloc[:200], dict.fromkeys(table["reading"].unique(), 180), 50)
    assert few.rows[0][2:] == ["180", "20 of 180 so far"]
    assert few.rows[1][2].endswith("**differs**")
    assert "agree" not in few.rows[1][3]
    assert few.rows[-1][3] == ""


def truth_table() -> pd.DataFrame:
    """Closed forms that share the gap with the samples, and have neither their q90 nor their overlap."""
    base = gap_table()[[*MODEL, "entropy_bits", "gap", "logdet_gap"]].assign(mir=0.9, negative=300)
    base = base.assign(q90=0.2, identifiable_q90=0.3, overlap50=0.7, switching_share=0.003)
    parts = [base.assign(target=target, again=0) for target in ("paper", "exact")]
    return pd.concat([*parts, parts[0].iloc[:9].assign(again=1, gap=parts[0]["gap"].iloc[:9] + 0.01)])


def test_what_only_the_samples_say_is_a_property_of_the_samples() -> None:
    found = estimates(readings_table().iloc[180:], truth_table(), 50)
    assert found.models == 180
    whose = {row[0]: row[-1] for row in truth_listing(found).rows}
    assert whose["gap in decades"] == "the models"
    assert whose["log-det gap"] == "the models"
    assert whose["q90 of log10 gamma, all directions"] == "the eight samples"
    assert whose["overlap of the leading 50 directions"] == "the eight samples"


def test_errors_stand_beside_the_spread_between_models() -> None:
    rng = np.random.default_rng(0)
    base = gap_table().rename(columns={"overlap50": "overlap"}).assign(mir=0.9)
    again = [base.assign(again=k, gap=2 + 0.3 * rng.standard_normal(180)) for k in range(8)]
    rows = {row[0]: row[1:] for row in errors_listing(pd.concat(again), truth_table()).rows}
    # 180 models of 8 values: the deviation is known to 2 %
    assert float(rows["gap, decades"][1]) == pytest.approx(0.3, rel=0.1)
    # 0.01 between two values is a deviation of 0.01 / sqrt(2)
    assert float(rows["gap, decades"][2]) == pytest.approx(0.01 / np.sqrt(2), rel=0.02)


def test_closed_forms_of_a_task_are_those_of_compare_geometries(trained: dict[str, bytes]) -> None:
    study = TruthStudy.of(SMOKE)
    settings = study.truth_task(Regime(0.1, 0.1, 8, 0), "exact").settings
    found = measure_truth(dict(settings), trained)
    drift = checkpoint_from_bytes(trained["model"]).drift
    x = training_series(SMOKE.data, 0.1, 0.1).test[: SMOKE.gap.length]
    config = GeometryConfig(particles=32, passes=2, paths=12, seed=0, ridge=1e-6, k=10)
    whole = compare_geometries(PALRNN(drift, 0.1, 0.1, 0.1), x, 8, config).figures
    names = ("gap", "gap_stderr", "mir", "entropy_bits", "q90", "logdet_gap", "overlap", "negative", "null")
    for name in names:
        assert found[name] == pytest.approx(whole[name], rel=1e-6), name
    # without the null directions the mean eigenvalue, and so the ridge, is a little larger: by 4 of 78
    assert found["identifiable_q90"] == pytest.approx(whole["identifiable_q90"], abs=0.03)


def test_the_living_are_counted_and_told_by_what_tells_them() -> None:
    models = gap_table()[MODEL].assign(starts=10, rests=0, cycle=0, diverges=0, leaves=0)
    models = models.assign(moves_on=np.where(np.arange(180) % 2, 10, 0), rests=0)
    models = models.assign(dstsp_median=1.0, dstsp_low=0.9, dstsp_high=1.2)
    made = fates_listing(models, 1000, 324)
    assert "180 of 324 models so far" in made.words
    assert made.rows[0][:2] == ["all", "180"]
    assert made.rows[0][2].startswith("50%")
    measured = models[MODEL].assign(right=np.arange(180) % 2, wrong=0.0)
    told = telling_listing(models, measured, {"right": "right", "wrong": "wrong"})
    assert [row[-1] for row in told.rows] == ["1.00 [1.00, 1.00]", "0.50 [0.50, 0.50]"]
