"""Readings, closed forms and fates: what the studies beyond the paper's own say of given tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_claims import gap_table

from palrnn import PALRNN, GeometryConfig, compare_geometries
from palrnn.geometry import IndefiniteInformationWarning, InformationConfig, observed_information
from palrnn.model import checkpoint_from_bytes
from palrnn.paper.claim import Claim
from palrnn.paper.fidelity import fidelity_page
from palrnn.paper.models import Regime
from palrnn.paper.presets import load_preset
from palrnn.paper.series import training_series
from palrnn.paper.studies.gap import GapStudy, measure_geometry
from palrnn.paper.studies.readings import ReadingsStudy
from palrnn.paper.studies.readings.comparison import (
    agreeing,
    best_reading,
    claims_by_reading,
    question,
    readings_listing,
)
from palrnn.paper.studies.survival.listings import fates_listing, telling_listing
from palrnn.paper.studies.truth import TruthStudy, measure_truth
from palrnn.paper.studies.truth.listings import (
    errors_listing,
    estimates,
    particles_listing,
    target_finding,
    truth_listing,
)
from palrnn.paper.summary import rival_verdicts

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
    models = dict.fromkeys(table["reading"].unique(), 180)
    made = readings_listing(table, models, claims)
    assert "64 particles, nominal (best, chosen after looking)" in made.columns
    (gaps,) = [row for row in made.rows if row[0].startswith("the gap ranges")]
    assert gaps[2].endswith("**differs**")
    assert gaps[3].endswith(": agrees")
    part = table.iloc[:200]
    few = readings_listing(part, models, claims_by_reading(part, 50))
    assert few.rows[0][2:] == ["180", "20 of 180 so far"]
    assert few.rows[1][2].endswith("**differs**")
    assert "agree" not in few.rows[1][3]
    assert few.rows[-1][3] == ""


class Readings(dict[str, pd.DataFrame]):
    """The one table that a study asks for."""

    def __init__(self, table: pd.DataFrame) -> None:
        super().__init__(readings=table)


def test_all_claims_are_counted_once_more_with_those_of_the_best_reading() -> None:
    names = [reading.name for reading in load_preset("paper").readings.readings]
    own, best = (gap_table().drop(columns="variant").assign(reading=name) for name in names[:2])
    table = pd.concat([own.assign(gap=own["gap"] + 1), best])
    rival = ReadingsStudy(load_preset("paper")).rival(Readings(table))
    assert rival is not None
    assert (rival.reading, rival.study) == (names[1], "gap")
    claims = {name: claims_by_reading(table, 50)[name] for name in names[:2]}
    other = Claim.compare("Fig.", "another study's", "", "", True, "by eye")
    counted = rival_verdicts(rival, {"gap": claims[names[0]], "toy": [other]})
    assert counted["verdicts"]["agrees"] == agreeing(rival.claims) + 1
    assert sum(counted["verdicts"].values()) == len(rival.claims) + 1
    # the study's own reading needs no second count
    assert (
        ReadingsStudy(load_preset("paper")).rival(Readings(pd.concat([best.assign(reading=names[0]), own])))
        is None
    )
    summary = {name: [] for name in ("listings", "claims", "findings", "computation")}
    summary |= {"settings_are_the_papers": True, "rivals": [counted]}
    summary["verdicts"] = {"agrees": 3, "differs": 2, "cannot be compared": 0}
    page = fidelity_page(summary, "results")
    assert (
        "Of 5 claims: 3 agree, 2 differ, 0 cannot be compared.\nWith the study `gap` by the reading" in page
    )
    assert (
        f"`{names[1]}`, the best of them and chosen after looking: {counted['verdicts']['agrees']} agree"
        in page
    )


def truth_table() -> pd.DataFrame:
    """Closed forms that share the gap with the samples, and have neither their q90 nor their overlap."""
    base = gap_table()[[*MODEL, "entropy_bits", "gap", "logdet_gap"]].assign(mir=0.9, negative=300)
    base = base.assign(q90=0.2, identifiable_q90=0.3, overlap50=0.7, switching_share=0.003)
    parts = [base.assign(target=target, again=0) for target in ("paper", "exact")]
    twice = parts[0][parts[0]["tau"] == 16].iloc[:9]
    return pd.concat([*parts, twice.assign(again=1, gap=twice["gap"] + 0.01)], ignore_index=True)


def test_what_only_the_samples_say_is_a_property_of_the_samples() -> None:
    found = estimates(readings_table().iloc[180:], truth_table(), 50)
    assert found.models == 180
    whose = {row[0]: row[-1] for row in truth_listing(found).rows}
    assert whose["gap in decades"] == "the models"
    assert whose["log-det gap"] == "the models"
    assert whose["q90 of log10 gamma, all directions"] == "the eight samples"
    assert whose["overlap of the leading 50 directions"] == "the eight samples"


def test_targets_are_compared_model_by_model() -> None:
    truth = truth_table()
    exact = truth["target"] == "exact"
    truth.loc[exact, ["gap", "switching_share"]] += [0.04, 0.2]
    truth.loc[exact.idxmax(), "gap"] = np.nan
    found = target_finding(truth, 50)
    assert found is not None
    assert "of 179 models" in found.found
    assert found.numbers["gap"]["value"] == pytest.approx(0.04)
    assert found.numbers["switching_share"]["value"] == pytest.approx(0.203)
    assert target_finding(truth[~exact], 50) is None


def test_trends_are_told_of_each_design_and_never_of_both_together() -> None:
    # within each design the gap falls with entropy; the second has more of both, so that together it rises
    rng = np.random.default_rng(2)
    base = gap_table().drop(columns="variant").assign(mir=0.9)
    levels = base["entropy_bits"].rank(pct=True)
    few = base.assign(gap=1.5 - 0.5 * levels, overlap50=0.3 + 0.01 * rng.standard_normal(180))
    more = few.assign(tau=16, seed=100 + few.groupby(MODEL[:2]).cumcount(), gap=few["gap"] + 1)
    more["entropy_bits"] += 5
    readings = pd.concat(
        [
            few.assign(reading="64 particles, five tau, nominal"),
            more.assign(reading="64 particles, tau 16, nominal"),
        ]
    )
    models = readings.drop_duplicates(MODEL).drop(columns="reading")
    truth = pd.concat([models.assign(target=target, again=0) for target in ("paper", "exact")])
    truth = truth.assign(identifiable_q90=0.0, switching_share=0.1)
    found = estimates(readings, truth, 50)
    designs = ["tau = 4, 8, 16, 32, 64 with 4 seeds", "tau = 16 with 20 seeds"]
    assert list(found.designs) == designs
    assert [len(models) for models in found.designs.values()] == [180, 180]
    rows = {row[0]: row[1:] for row in truth_listing(found).rows}
    for design in designs:
        words = rows[f"gap against entropy, r by process noise; {design}"]
        assert words[-1] == "neither"
        assert words[1].startswith("-")
        partial = rows[
            f"gap against entropy given observation noise, partial r at process noise 0.5; {design}"
        ]
        assert partial[0] == "-0.31"
        assert partial[1].startswith("-")
    assert not any(name.endswith("by process noise") for name in rows)


def test_trends_of_the_first_design_have_the_verdicts_of_the_claims() -> None:
    readings = readings_table().iloc[180:]
    found = estimates(readings, truth_table(), 200)
    rows = {row[0]: row for row in truth_listing(found).rows}
    claims = {question(claim): claim for claim in claims_by_reading(readings, 200)["64 particles, nominal"]}
    (design,) = found.designs
    for row, claim in (
        ("overlap against entropy, r by process noise", "the overlap decreases with entropy"),
        ("gap against entropy, r by process noise", "at fixed Q the gap tends to increase with entropy"),
    ):
        assert rows[f"{row}; {design}"][2] in claims[claim].ours
    for process in (0.1, 0.3, 0.5):
        row = rows[
            f"gap against entropy given observation noise, partial r at process noise {process:g}; {design}"
        ]
        claim = claims[f"partial r given observation noise (process noise {process:g})"]
        assert (claim.low, claim.high) == pytest.approx(
            [float(x) for x in row[2].split("[")[1][:-1].split(",")], abs=0.006
        )


def repeats_table() -> pd.DataFrame:
    """Models of tau = 16, by eight seeds of the filter with 64 particles and two with 128."""
    rng = np.random.default_rng(0)
    base = gap_table().rename(columns={"overlap50": "overlap"}).assign(mir=0.9)
    base = base[base["tau"] == 16]
    return pd.concat(
        [
            base.assign(particles=particles, again=k, gap=shift + 0.3 * rng.standard_normal(36))
            for particles, shift, seeds in ((64, 2.0, 8), (128, 2.5, 2))
            for k in range(seeds)
        ]
    )


def test_errors_stand_beside_the_spread_between_models_of_the_same_interval() -> None:
    truth = truth_table().assign(gap_stderr=0.02, mir_stderr=0.001)
    # the exact target has half a decade between models of other intervals, none between those of tau = 16
    exact = (truth["target"] == "exact") & (truth["again"] == 0)
    truth.loc[exact, "gap"] = 2 + 0.5 * (truth.loc[exact, "tau"] != 16)
    again = truth[exact & (truth["tau"] == 16)].iloc[:4]
    truth = pd.concat([truth, again.assign(again=1, gap=again["gap"] + 0.02)])
    made = errors_listing(repeats_table(), truth, 16)
    rows = {(row[0], row[1]): row[2:] for row in made.rows}
    between, samples, seeds, passes = rows["gap, decades", "the paper's target"]
    assert float(between) > 0.1
    # 36 models of 8 values: the deviation is known to 4.5 %
    assert float(samples) == pytest.approx(0.3, rel=0.15)
    # 0.01 between two values is a deviation of 0.01 / sqrt(2)
    assert float(seeds) == pytest.approx(0.01 / np.sqrt(2), rel=0.02)
    assert float(passes) == 0.02
    # nothing but rounding between the models of one interval
    assert float(rows["gap, decades", "exact target"][0]) < 1e-12
    assert rows["gap, decades", "exact target"][1] == ""
    assert float(rows["gap, decades", "exact target"][2]) == pytest.approx(0.02 / np.sqrt(2), rel=0.02)
    assert float(rows["missing-information ratio", "exact target"][3]) == 0.001
    assert rows["overlap", "exact target"][3] == ""
    assert "exact target: 36 models, 4 of them twice" in made.words


def test_particles_are_compared_over_the_same_models_with_intervals() -> None:
    made = particles_listing(repeats_table(), 200)
    rows = {row[0]: row[1:] for row in made.rows}
    assert made.columns == ["", "64 particles", "128 particles", "128 less 64"]
    value, low, high = (
        float(word)
        for word in rows["gap, decades"][2].replace("[", "").replace("]", "").replace(",", "").split()
    )
    # 36 differences of deviation 0.3 sqrt(1/2 + 1/8): the error of their median is 0.05
    assert value == pytest.approx(0.5, abs=0.2)
    assert low < value < high
    assert float(rows["gap, decades: over seeds"][1]) == pytest.approx(0.3, rel=0.4)
    assert rows["gap, decades: over seeds"][2] == ""
    assert "8 with 64, 2 with 128" in made.words


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


def test_variants_draw_paths_as_they_say(trained: dict[str, bytes]) -> None:
    study, regime = GapStudy.of(SMOKE), Regime(0.1, 0.1, 16, 0)
    variants = {variant.name: variant for variant in study.settings.variants}
    # what a task from before is told has not changed
    paper = {"particles": 16, "paths": 8, "states_per_path": 1, "target": "paper"}
    assert variants["paper"].samples == paper
    assert variants["paper"].columns == paper | {"method": "ancestors", "sweeps": None}
    settings = dict(study.geometry_task(regime, variants["exact target"]).settings)
    found = measure_geometry(settings, trained)
    drift = checkpoint_from_bytes(trained["model"]).drift
    x = training_series(SMOKE.data, 0.1, 0.1).test[: SMOKE.gap.length]
    config = InformationConfig.paper().changed(target="exact", particles=32, method="gibbs", sweeps=2)
    with pytest.warns(IndefiniteInformationWarning):
        information = observed_information(PALRNN(drift, 0.1, 0.1, 0.1), x, config)
    assert found["trace_observed"] == pytest.approx(information.trace_observed, rel=1e-9)
    traced = measure_geometry(settings | {"method": "ancestors"}, trained)
    assert traced["trace_observed"] != found["trace_observed"]


def test_the_living_are_counted_and_told_by_what_tells_them() -> None:
    models = gap_table()[MODEL].assign(starts=10, rests=0, cycle=0, diverges=0, leaves=0)
    models = models.assign(moves_on=np.where(np.arange(180) % 2, 10, 0), rests=0)
    models = models.assign(dstsp_median=1.0, dstsp_low=0.9, dstsp_high=1.2)
    made = fates_listing(models, 1000, 324, {"a dozen": models.iloc[1:25:2][MODEL]})
    assert "180 of 324 models so far" in made.words
    assert made.rows[0][:2] == ["all", "180"]
    assert made.rows[0][2].startswith("50%")
    assert made.rows[1][:3] == ["a dozen", "12", "100% [100%, 100%]"]
    measured = models[MODEL].assign(right=np.arange(180) % 2, wrong=0.0)
    told = telling_listing(models, measured, {"right": "right", "wrong": "wrong"})
    assert [row[-1] for row in told.rows] == ["1.00 [1.00, 1.00]", "0.50 [0.50, 0.50]"]
