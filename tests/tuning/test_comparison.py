"""Configurations side by side, and the choice of the anchor's weight."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from palrnn.model import ALRNN, PALRNN
from palrnn.report.tuning_figures import before_after_figure, tradeoff_figure
from palrnn.tuning import Comparison, SAEMConfig, SAEMResult, TuningHistory, compare, comparison_configs

SMALL = {"length": 12, "iterations": 2, "windows": 4, "particles": 8, "paths": 2, "heldout_windows": 5}
MODEL = PALRNN(ALRNN([0.5, 0.4], [[0.1, 0.3], [-0.3, 0.1]], [0.1, 0.0], [[1.0], [0.5]], 1), 0.3, 0.2, 0.5)


def _result(configuration, beta, evidence, dstsp, lyapunov, diverged=np.nan, before=(1.0, 0.9)):
    rows = [
        {"iteration": 0.0, "dstsp": before[0], "lyapunov": before[1]},
        {
            "iteration": 1.0,
            "heldout_evidence": evidence,
            "dstsp": dstsp,
            "lyapunov": lyapunov,
            "diverged_at": diverged,
        },
    ]
    config = SAEMConfig(configuration=configuration, beta=beta, reference_lyapunov=0.9)
    return SAEMResult(MODEL, TuningHistory.of(rows), config, 0, 0.0)


def test_the_weight_is_chosen_by_evidence_among_those_that_keep_the_dynamics():
    results = {
        "full": _result("full", 1.0, 0.9, 0.5, 0.9),  # not anchored
        "collapsed": _result("anchored", 1.0, 0.8, 5.0, 0.9),
        "tame": _result("anchored", 2.0, 0.7, 1.0, 0.1),
        "gone": _result("anchored", 3.0, 0.6, 1.0, 0.9, diverged=100.0),
        "good": _result("anchored", 4.0, 0.5, 1.4, 0.8),
        "poorer": _result("anchored", 5.0, 0.4, 0.9, 0.9),
    }
    assert Comparison(results, slack=0.5).chosen == "good"
    assert Comparison(results, slack=0.1).chosen == "poorer"
    del results["good"], results["poorer"]
    assert Comparison(results, slack=0.5).chosen is None


def test_the_named_configurations_differ_in_nothing_but_their_configuration():
    configs = comparison_configs(SAEMConfig(ridge=0.5), [10.0, 2.0])
    assert list(configs) == ["baseline", "calib", "full", "beta-2", "beta-10"]
    assert configs["beta-10"].beta == 10.0
    assert configs["beta-10"].configuration == "anchored"
    assert all(config.ridge == 0.5 for config in configs.values())


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    data = np.stack([MODEL.sample([0.0], 200, seed=s).observations for s in range(2)])
    config = SAEMConfig(**SMALL, rollout_steps=500, rollout_discard=100, evaluate_every=1)
    run = tmp_path_factory.mktemp("run")
    configs = comparison_configs(config, [50.0])
    return compare(MODEL, data, configs, heldout=data, reference=data[0], run=run), run


def test_all_start_from_the_same_evaluation(comparison):
    found, run = comparison
    starts = {name: result.history["heldout_evidence"][0] for name, result in found.results.items()}
    assert len(set(starts.values())) == 1
    assert found.row("baseline")["heldout_evidence"] == starts["full"]
    assert found.row("calib")["dstsp"] == found.row("baseline")["dstsp"]
    assert (run / "beta-50" / "checkpoint.safetensors").is_file()


def test_the_table_as_a_file_holds_one_line_per_configuration(comparison, tmp_path):
    found, _ = comparison
    found.to_csv(tmp_path / "c.csv")
    with open(tmp_path / "c.csv", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["name"] for line in lines] == list(found.results)
    assert float(lines[1]["heldout_evidence"]) == found.row("calib")["heldout_evidence"]
    assert lines[0]["beta"] == ""
    assert float(lines[3]["beta"]) == 50.0
    assert len(found.table().splitlines()) == 5


def test_the_figures_show_what_was_measured(comparison):
    found, _ = comparison
    axes = tradeoff_figure(found).axes[0]
    shown = {text.get_text() for text in axes.texts}
    assert {"baseline", "calib", "full", "β = 50"} <= shown
    history = found.results["full"].history
    trajectories = {
        "Reference": np.random.default_rng(0).standard_normal((50, 1)),
        "After": np.zeros((50, 1)),
    }
    figure = before_after_figure(history, trajectories, reference_lyapunov=0.5)
    titles = [place.get_title(loc="left") for place in figure.axes]
    assert titles[:4] == ["Reference", "After", "Evidence", "Noise"]
    drawn = figure.axes[3].get_lines()[0].get_ydata()
    np.testing.assert_array_equal(drawn, history["process_std"])
