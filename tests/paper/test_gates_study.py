"""Gate noise: whether its learning had settled, and sampled runs with their spread over seeds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.paper.presets import load_preset
from palrnn.paper.studies.evidence import NOISE_LEVELS, tune_model
from palrnn.paper.studies.gates import (
    ITERATIONS,
    GatesStudy,
    counterpart_columns,
    last_change,
    measure_counterparts,
    settled_words,
)
from palrnn.paper.studies.noise import NoiseStudy

SMOKE = load_preset("smoke")


@pytest.fixture(scope="module")
def tuned(trained: dict[str, bytes]) -> dict[str, bytes]:
    """A model with its gate noise learned, by the task of the smoke scale."""
    study = GatesStudy.of(SMOKE)
    unit = study.units()[-1]
    return {"model": tune_model(dict(NoiseStudy.of(SMOKE).tuning_task(study.tuning(unit)).settings), trained)}


def test_a_tuned_model_keeps_the_course_of_its_noise(tuned: dict[str, bytes]) -> None:
    checkpoint = checkpoint_from_bytes(tuned["model"])
    course, model = checkpoint.training["course"], checkpoint.model
    assert isinstance(model, PALRNN)
    iterations = SMOKE.gates.ways[-1].saem.iterations
    assert {name: len(course[name]) for name in NOISE_LEVELS} == dict.fromkeys(NOISE_LEVELS, iterations + 1)
    assert course["gate_std"][0] == SMOKE.gates.start.gate_std
    assert course["gate_std"][-1] == pytest.approx(model.gate_std, rel=1e-12)
    assert course["process_std"][-1] == pytest.approx(model.process_variances.mean() ** 0.5, rel=1e-12)


def test_the_last_change_is_the_greatest_share_of_any_level_at_the_end() -> None:
    levels = np.ones((3, ITERATIONS + 6))
    levels[0, :5] = 7.0  # long before the end
    levels[1, -1] = 1.005
    levels[2, -1] = 0.98
    assert last_change(levels) == pytest.approx(0.02)
    assert math.isnan(last_change(np.ones((3, ITERATIONS))))


def test_a_model_is_sampled_with_several_seeds(tuned: dict[str, bytes]) -> None:
    study = GatesStudy.of(SMOKE)
    settings = dict(study.unit_tasks(study.units()[-1])[2].settings)
    found = measure_counterparts(settings, tuned)
    assert settings["seeds"] == len(found["dstsp_sampled"]) == SMOKE.gates.seeds
    assert len(set(found["dstsp_sampled"])) == SMOKE.gates.seeds
    # the first of more seeds are the same ones
    more = measure_counterparts(settings | {"seeds": SMOKE.gates.seeds + 1}, tuned)
    assert more["dstsp_sampled"][:-1] == found["dstsp_sampled"]
    assert more["lyapunov_hard"] == found["lyapunov_hard"]


def test_a_sampled_run_that_diverged_is_infinitely_far_and_has_no_exponent() -> None:
    found = {"gate_std": 0.1, "dstsp_sampled": [1.0, None, 2.0], "lyapunov_sampled": [0.8, None, 1.0]}
    columns = counterpart_columns(found)
    assert (columns["sampled_dstsp_median"], columns["sampled_dstsp_high"]) == (2.0, math.inf)
    assert (columns["sampled_lyapunov_median"], columns["sampled_lyapunov_high"]) == (0.9, 1.0)
    lost = counterpart_columns(found | {"dstsp_sampled": [None], "lyapunov_sampled": [None]})
    assert math.isnan(lost["sampled_lyapunov_median"])


def gates_table() -> pd.DataFrame:
    """Three models in one way: sampled nearer, no different, further; one of them had settled."""
    rows = [
        (2.0, 2.5, 1.0, 1.5, 10, 0.005),
        (2.0, 2.5, 1.0, 2.1, 10, 0.02),
        (9.0, 9.5, 9.8, 10.0, 4, 0.3),
    ]
    return pd.DataFrame(
        {"way": "full", "evidence": 0.8, "gate_std": 0.1, "fitted_process_std": 0.05, "starts": 10}
        | {"dstsp_low": low, "dstsp_median": (low + high) / 2, "dstsp_high": high, "moves_on": moves}
        | {"sampled_dstsp_low": near, "sampled_dstsp_median": (near + far) / 2, "sampled_dstsp_high": far}
        | {"sampled_lyapunov_low": 0.7, "sampled_lyapunov_median": 0.8, "sampled_lyapunov_high": 0.9}
        | {"lyapunov_hard": 0.9, "last_change": change, "iterations": 120.0}
        for low, high, near, far, moves, change in rows
    )


def test_nearer_and_further_count_beyond_the_spread_of_both() -> None:
    (listing,) = GatesStudy.of(SMOKE).listings({"gates": gates_table()})
    (row,) = listing.rows
    cells = dict(zip(listing.columns, row, strict=True))
    assert cells["sampled nearer, further"] == "1, 1 of 3"
    assert cells["attractor kept, hard"] == "2 of 3"
    assert cells["moves on, hard"] == "2 of 3"
    assert cells["D_stsp, hard"] == "2.25 [2, 2.5]"
    assert "Of 3 runs of particle-SAEM, of 120 iterations, 1 had settled" in listing.words


def test_without_a_tuning_there_is_nothing_to_settle() -> None:
    assert settled_words(gates_table().drop(columns="last_change")) == ""
    assert settled_words(gates_table().assign(last_change=np.nan)) == ""
