"""Verdicts follow the tables: what agrees is said to agree, and a table that says otherwise differs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from palrnn.paper.claim import Claim
from palrnn.paper.presets import load_preset
from palrnn.paper.studies.attractor import AttractorStudy
from palrnn.paper.studies.diagnostics import DiagnosticsStudy
from palrnn.paper.studies.evidence.claims import evidence_claims
from palrnn.paper.studies.floor import floor_finding
from palrnn.paper.studies.gap.claims import PAPER_FIXED_Q, fixed_q_rows, gap_claims
from palrnn.paper.studies.gap.findings import gap_findings
from palrnn.paper.studies.toy import ToyStudy

SMOKE = load_preset("smoke")
RESAMPLES = SMOKE.resamples


def claims_of(study, table: pd.DataFrame) -> list[Claim]:
    return study(SMOKE).claims({study.name: table})


def verdicts(claims) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in claims}


def gap_table(slope: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """A gap table like the paper's: entropy and gap both follow observation noise, ``slope`` their sign."""
    rng = np.random.default_rng(seed)
    rows = []
    levels = itertools.product((0.1, 0.3, 0.5), (0.1, 0.3, 0.5), (4, 8, 16, 32, 64), range(4))
    for process, observation, tau, model in levels:
        low, high = PAPER_FIXED_Q[process].h_min, min(PAPER_FIXED_Q[process].h_max, 5.95)
        part = (observation - 0.1) / 0.4
        entropy = low + (high - low) * np.clip(0.8 * part + 0.2 * rng.random(), 0, 1)
        gap = 2 + slope * (part - 0.5) + 0.4 * rng.standard_normal()
        rows.append(
            {
                "process_std": process,
                "observation_std": observation,
                "tau": tau,
                "seed": model,
                "variant": "paper",
                "particles": 64,
                "paths": 8,
                "states_per_path": 1,
                "target": "paper",
                "method": "ancestors",
                "entropy_bits": entropy,
                "entropy_bound": 6.0,
                "gap": np.clip(gap, 1.0, 3.0),
                "logdet_gap": -100 + rng.standard_normal(),
                "q90": -1 + 0.1 * rng.standard_normal(),
                "overlap50": 0.3 - 0.2 * slope * part + 0.01 * rng.standard_normal(),
                "negative": 7,
                "distinct_first": 2,
                "missing_dimensions": 880.0,
                "informed_dimensions": 940,
                "log_evidence": 100.0,
                "trace_missing_state": np.nan,
                "trace_missing_switching": np.nan,
            }
        )
    return pd.DataFrame(rows)


def gap_verdicts(table: pd.DataFrame) -> dict[str, str]:
    fixed_q = pd.DataFrame(fixed_q_rows(table, RESAMPLES))
    claims = gap_claims(table, fixed_q, RESAMPLES)
    return {f"{claim.where}: {claim.claim}": claim.verdict for claim in claims}


def test_a_table_like_the_papers_agrees_with_it() -> None:
    found = gap_verdicts(gap_table())
    assert len(found) == 3 + 3 * 7 + 4
    assert found["Fig. results b: the gap ranges from about 10 up to about 1000"] == "agrees"
    assert found["Fig. results b: at fixed Q the gap tends to increase with entropy"] == "agrees"
    assert found["Table fixedQ_strat, process noise 0.3: Spearman r"] == "agrees"
    assert found["Table fixedQ_strat, process noise 0.1: n"] == "agrees"
    assert found["Fig. matrix_mismatch: the overlap decreases with entropy"] == "agrees"


def test_an_entropy_beyond_the_bound_of_the_particles_cannot_be_compared() -> None:
    found = gap_verdicts(gap_table())
    assert found["Table fixedQ_strat, process noise 0.5: highest entropy"] == "cannot be compared"
    assert found["Table fixedQ_strat, process noise 0.5: entropy span"] == "cannot be compared"
    assert found["Table fixedQ_strat, process noise 0.5: lowest entropy"] == "agrees"


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (
            lambda t: t.assign(gap=t["gap"] - 2),
            "Fig. results b: the gap ranges from about 10 up to about 1000",
        ),
        (
            lambda t: t.assign(gap=t["gap"].where(t.index > 0, -0.1)),
            "Fig. results b: teacher-forcing curvature exceeds the observed information",
        ),
        (
            lambda t: t.assign(logdet_gap=-t["logdet_gap"]),
            "Fig. matrix_mismatch: the log-det gap is negative",
        ),
        (lambda t: t.assign(q90=-t["q90"]), "Fig. matrix_mismatch: q90 of log10 gamma is negative"),
        (
            lambda t: t.assign(overlap50=t["overlap50"] + 0.6),
            "Fig. matrix_mismatch: the leading-subspace overlap is low",
        ),
        (
            lambda t: gap_table(slope=-1.0),
            "Fig. results b: at fixed Q the gap tends to increase with entropy",
        ),
        (lambda t: gap_table(slope=-1.0), "Table fixedQ_strat, process noise 0.1: Spearman r"),
        (lambda t: gap_table(slope=-1.0), "Fig. matrix_mismatch: the overlap decreases with entropy"),
        (lambda t: t.iloc[1:], "Table fixedQ_strat, process noise 0.1: n"),
        (
            lambda t: t.assign(entropy_bits=t["entropy_bits"] + 1),
            "Table fixedQ_strat, process noise 0.1: lowest entropy",
        ),
    ],
)
def test_a_table_that_says_otherwise_differs(change, claim: str) -> None:
    table = gap_table()
    assert gap_verdicts(table)[claim] == "agrees"
    assert gap_verdicts(change(table))[claim] == "differs"


@pytest.mark.parametrize(
    ("lowest", "shown", "verdict"),
    [
        (0.49922, "10^0.499 ", "differs"),
        (0.50001, "10^0.50 ", "agrees"),
        (0.4999999, "10^0.4999999 ", "differs"),
    ],
)
def test_an_end_of_the_range_is_printed_so_that_its_side_can_be_seen(lowest, shown, verdict) -> None:
    table = gap_table()
    table.loc[0, "gap"] = lowest
    claim = gap_claims(table, pd.DataFrame(fixed_q_rows(table, RESAMPLES)), RESAMPLES)[0]
    assert claim.ours.startswith(shown)
    assert claim.verdict == verdict


def test_models_without_a_gap_are_counted_and_left_out() -> None:
    table = gap_table()
    table.loc[0, "gap"] = np.nan
    first = fixed_q_rows(table, RESAMPLES)[0]
    assert (first["n"], first["without_gap"]) == (59, 1)
    assert "1 models have no gap" in gap_claims(table, pd.DataFrame([first]), RESAMPLES)[0].ours


def evidence_table(**medians: tuple[float, float, float]) -> pd.DataFrame:
    """Evidence, D_stsp and Lyapunov exponent by configuration, with a little variation between models."""
    rng = np.random.default_rng(1)
    rows = []
    for process, observation in itertools.product((0.1, 0.3, 0.5), (0.0, 0.1, 0.3, 0.5)):
        model = 0.02 * rng.standard_normal(3)
        for length, (name, values) in itertools.product((16, 32), medians.items()):
            evidence, dstsp, lyapunov = values + model
            row = {
                "process_std": process,
                "observation_std": observation,
                "length": length,
                "configuration": name,
            }
            row |= {
                "evidence": evidence,
                "dstsp": dstsp,
                "lyapunov": lyapunov,
                "lyapunov_error": lyapunov - 0.9056,
                "died": False,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def test_evaluations_in_which_the_filter_died_are_left_out_and_counted() -> None:
    table = evidence_table(baseline=(0.5, 1.0, 0.9), calib=(0.6, 1.0, 0.9), full=(0.7, 10.0, -1.0))
    dead = table.index[table["configuration"] == "full"][:3]
    table.loc[dead, "evidence"], table.loc[dead, "died"] = np.nan, True
    claims = evidence_claims(table, RESAMPLES)
    assert "of 24 settings" in claims[0].ours
    assert "died" not in claims[0].ours
    assert "of 21 settings; the filter died in 3 evaluations" in claims[1].ours


def test_fine_tuning_like_the_papers_agrees_with_it() -> None:
    table = evidence_table(baseline=(0.5, 1.0, 0.9), calib=(0.6, 1.0, 0.9), full=(0.7, 10.0, -1.0))
    assert set(verdicts(evidence_claims(table, RESAMPLES)).values()) == {"agrees"}


@pytest.mark.parametrize(
    ("full", "calib", "claim"),
    [
        ((0.55, 10.0, -1.0), (0.6, 1.0, 0.9), "full SAEM has the most held-out evidence"),
        ((0.7, 10.0, -1.0), (0.4, 1.0, 0.9), "calib has more held-out evidence than baseline"),
        ((0.7, 0.5, -1.0), (0.6, 1.0, 0.9), "full SAEM degrades D_stsp"),
        (
            (0.7, 10.0, 0.8),
            (0.6, 1.0, 0.9),
            "full SAEM drives the signed Lyapunov error to strongly negative values",
        ),
        ((0.7, 10.0, -1.0), (0.6, 1.01, 0.9), "calib leaves both hard-gated invariants unchanged"),
    ],
)
def test_fine_tuning_that_goes_otherwise_differs(full, calib, claim: str) -> None:
    table = evidence_table(baseline=(0.5, 1.0, 0.9), calib=calib, full=full)
    found = verdicts(evidence_claims(table, RESAMPLES))
    assert [name for name, verdict in found.items() if verdict == "differs"] == [claim]


def test_the_toy_is_judged_by_the_sign_of_its_correlations() -> None:
    gates, seeds = np.meshgrid(np.geomspace(0.03, 0.9, 10), np.arange(5), indexing="ij")
    table = pd.DataFrame({"sigma_g": gates.ravel(), "seed": seeds.ravel()})
    table["entropy_bits"] = table["sigma_g"] + 0.01 * table["seed"]
    table["mir"], table["log10_trace"] = table["entropy_bits"], -table["entropy_bits"]
    assert set(verdicts(claims_of(ToyStudy, table)).values()) == {"agrees"}
    table["log10_trace"] *= -1
    assert verdicts(claims_of(ToyStudy, table))["more entropy means less observed curvature"] == "differs"


def test_collapse_is_judged_by_spread_and_degeneracy_by_ess() -> None:
    steps = np.arange(1000)
    wave = np.sin(steps / 20)
    table = pd.DataFrame({"step": steps})
    for axis in "xyz":
        table[f"truth_{axis}"], table[f"baseline_{axis}"], table[f"full_{axis}"] = (
            wave,
            0.98 * wave,
            0.1 * wave,
        )
    assert set(verdicts(claims_of(AttractorStudy, table)).values()) == {"agrees"}
    table[["baseline_x", "baseline_y", "baseline_z"]] *= 0.5
    assert list(verdicts(claims_of(AttractorStudy, table)).values()) == [
        "differs",
        "agrees",
    ]
    traces = pd.DataFrame({"particles": 64, "ess": np.full(30, 0.6), "resampled": False})
    assert claims_of(DiagnosticsStudy, traces)[0].verdict == "agrees"
    assert claims_of(DiagnosticsStudy, traces.assign(ess=0.01))[0].verdict == "differs"


def test_findings_read_the_other_variants() -> None:
    paper = gap_table()
    many = paper.assign(
        variant="many samples",
        particles=256,
        paths=64,
        states_per_path=64,
        entropy_bound=8.0,
        gap=paper["gap"] + 0.25,
        log_evidence=paper["log_evidence"] + 597 * 0.013,
        trace_missing_state=99.0,
        trace_missing_switching=1.0,
        negative=0,
    )
    found = {finding.about: finding for finding in gap_findings(pd.concat([paper, many]), 597, 16, RESAMPLES)}
    beside = found["many samples, beside paper"].numbers
    assert beside["gap"]["value"] == pytest.approx(0.25)
    assert beside["evidence"]["value"] == pytest.approx(0.013)
    assert found["what is missing (many samples)"].numbers["switching_share"]["value"] == pytest.approx(0.01)
    assert found["entropy against its bound"].numbers["many samples"]["bound"] == 8.0
    assert found["negative directions"].numbers["paper"]["negative"]["value"] == 7


def test_findings_say_how_paths_were_drawn() -> None:
    paper = gap_table()
    gibbs = paper.assign(variant="exact target", method="gibbs", distinct_first=8)
    found = {
        finding.about: finding for finding in gap_findings(pd.concat([paper, gibbs]), 597, 16, RESAMPLES)
    }
    traced, _, chained = found["coalescence"].found.partition(". By particle Gibbs it is ")
    assert traced.endswith("paper: 2 of 8")
    assert chained == "exact target: 8 of 8"


def test_a_forcing_interval_behind_both_gap_and_entropy_is_found_out() -> None:
    table = gap_table()
    rng = np.random.default_rng(5)
    common = np.log2(table["tau"].to_numpy())
    table = table.assign(
        gap=common + 0.1 * rng.standard_normal(len(table)),
        entropy_bits=common + 0.1 * rng.standard_normal(len(table)),
    )
    found = gap_findings(table, 597, 16, RESAMPLES)[0]
    assert found.about == "the forcing interval"
    for stratum in found.numbers["strata"].values():
        assert stratum["gap_with_tau"] > 0.9
        assert stratum["entropy_with_tau"] > 0.9
        # nothing is left once tau is known
        assert stratum["partial"]["low"] < 0 < stratum["partial"]["high"]


def test_the_floor_tells_how_many_models_are_beyond_reproach() -> None:
    floor = pd.DataFrame({"dstsp": np.linspace(0.4, 1.0, 50)})
    models = pd.DataFrame({"tau": [16, 16, 64], "dstsp": [0.5, 5.0, 9.0]})
    assert "50% of them cannot be told from the truth" in floor_finding(floor, models, 16).found
