"""`palrnn search`: what it prints and writes, how it goes on, and what can be done with its folder."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import call, run
from tiny_search import series

import palrnn

QUICK = (
    *("--updates", "60", "--workers", "1", "--dt", "0.01", "--latent-dim", "6", "--gated", "2"),
    *("--sequence-length", "20", "--batch-size", "2"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("search command")
    np.save(place / "x.npy", series())
    assert run("search", place / "x.npy", *QUICK, "-o", place / "found", "-q") == 0
    return place / "found"


def test_it_prints_what_was_tried_why_the_winner_won_and_the_verdict(folder, capsys):
    code, out, err = call(capsys, "search", "-o", folder, "--workers", 1)
    assert code == 0
    assert "rung 2 of 2" in err
    assert "the best of 4 candidates" in out
    assert "won. From the validation rows it is not usable" in out
    assert "verdict: not usable" in out
    # what a search has tried already is not advised again
    assert "a longer search" in out
    assert f"the model in {folder}/best" in out


def test_json_is_all_of_it(folder, capsys):
    code, out, err = call(capsys, "search", "-o", folder, "--workers", 1, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found["table"]) == 4
    assert {key: found[key] for key in ("why", "verdict")} == {
        key: json.loads((folder / "result.json").read_text())[key] for key in ("why", "verdict")
    }


def test_other_commands_take_the_folder_for_its_winner(folder, capsys):
    code, out, _ = call(capsys, "evaluate", folder, "--long-steps", 1000, "--json")
    assert code == 0
    assert json.loads(out)["verdict"]["grade"] == "not usable"


def test_the_report_shows_the_table(folder, tmp_path):
    settings = "[invariants]\nsteps = 100\ndiscard = 10\npairs = 2\nahead = 5\nlong_steps = 1000\n"
    settings += "[filter]\nsteps = 20\nparticles = 8\npaths = 4\n"
    settings += "[geometry]\nsteps = 20\nparticles = 8\npasses = 2\npaths = 4\nstate_paths = 1\n"
    (tmp_path / "settings.toml").write_text(settings)
    page = tmp_path / "report.html"
    words = ("--config", tmp_path / "settings.toml", "--no-tune", "-o", page, "-q")
    assert run("report", folder / "best", *words) == 0
    text, found = page.read_text(), palrnn.Reconstruction.load(folder).search
    assert found.why in text.replace("&#x27;", "'")
    assert "the best of 4 candidates" in text
    assert "table.csv" in text


def test_a_model_that_is_not_good_is_sent_to_search(tmp_path, capsys):
    np.save(tmp_path / "x.npy", series())
    words = (
        "train",
        tmp_path / "x.npy",
        "--updates",
        5,
        "--latent-dim",
        6,
        "--gated",
        2,
        "-o",
        tmp_path / "run",
    )
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert "palrnn search" in out


def test_several_values_are_choices(tmp_path, capsys):
    np.save(tmp_path / "x.npy", series())
    words = ("--learning-rate", 0.001, "--learning-rate", 0.002, "--candidates", 8, "-o", tmp_path / "found")
    assert run("search", tmp_path / "x.npy", *QUICK, *words, "--json") == 0
    rates = {row["learning_rate"] for row in json.loads(capsys.readouterr().out)["table"]}
    assert rates == {0.001, 0.002}


def test_a_folder_of_something_else_is_refused(tmp_path, capsys):
    np.save(tmp_path / "x.npy", series())
    code, _, err = call(capsys, "search", tmp_path / "x.npy", *QUICK, "-o", tmp_path)
    assert code == 1
    assert "holds files that are not of a search" in err or "is what the command reads" in err
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
