"""`palrnn report`: pages from folders of runs."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from command_line import run
from tiny_reconstruction import TINY, tiny_reconstruction

from palrnn.runs import reconstruction


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    tiny_reconstruction(updates=200).save(path / "one")
    TINY.to_toml(path / "tiny.toml")
    return path


def test_a_run_becomes_a_page_and_its_settings_give_the_same_bytes(folder, tmp_path, capsys):
    first = tmp_path / "first.html"
    assert run("report", folder / "one", "--config", folder / "tiny.toml", "-o", first, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["report"] == str(first)
    assert set(result["runs"][0]) == {
        "name",
        "facts",
        "headlines",
        "invariants",
        "diagnostics",
        "geometry",
        "tuning",
    }
    # once with what the folder keeps, once computed anew
    second, third = tmp_path / "second.html", tmp_path / "third.html"
    assert run("report", folder / "one", "--config", first.with_suffix(".toml"), "-o", second, "-q") == 0
    assert second.read_bytes() == first.read_bytes()
    shutil.rmtree(folder / "one" / "findings")
    assert run("report", folder / "one", "--config", first.with_suffix(".toml"), "-o", third, "-q") == 0
    assert third.read_bytes() == first.read_bytes()


def test_settings_that_were_left_open_stay_open_in_the_file(folder, tmp_path):
    # another step, another forcing and fewer rows than the defaults, and a gap in the first row
    run_with_gap = tiny_reconstruction(updates=20, dt=0.05)
    held = run_with_gap.held[:150].copy()
    held[0, 0] = np.nan
    replace(run_with_gap, reference=held).save(tmp_path / "run")
    given = "[invariants]\nsteps = 100\ndiscard = 20\npairs = 2\nlong_steps = 1000\n"
    given += "[filter]\nparticles = 8\n[geometry]\nparticles = 8\npasses = 1\npaths = 4\n"
    given += "[tuning.task.saem]\niterations = 1\nwindows = 2\nparticles = 8\npaths = 2\n"
    (tmp_path / "some.toml").write_text(given)
    first, second = tmp_path / "first.html", tmp_path / "second.html"
    words = ("report", tmp_path / "run", "-q", "--seed", 3)
    assert run(*words, "--config", tmp_path / "some.toml", "-o", first) == 0
    shutil.rmtree(tmp_path / "run" / "findings")
    assert run(*words[:-2], "--config", tmp_path / "first.toml", "-o", second) == 0
    assert second.read_bytes() == first.read_bytes()
    assert (tmp_path / "second.toml").read_bytes() == (tmp_path / "first.toml").read_bytes()
    saem = tomllib.loads((tmp_path / "first.toml").read_text())["tuning"]["task"]["saem"]
    assert saem == {"iterations": 1, "windows": 2, "particles": 8, "paths": 2}


def test_several_runs_stand_side_by_side(folder, tmp_path, capsys):
    other = tmp_path / "<b>other<b>"
    shutil.copytree(folder / "one", other)
    page = tmp_path / "both.html"
    words = ("report", folder / "one", other, "--no-tune", "--config", folder / "tiny.toml", "-o", page)
    assert run(*words, "--title", "Two <i>runs</i>") == 0
    assert "2 runs" in capsys.readouterr().out
    text = page.read_text()
    assert "<h1>Two &lt;i&gt;runs&lt;/i&gt;</h1>" in text
    assert "&lt;b&gt;other&lt;b&gt;" in text
    assert "<b>other<b>" not in text
    assert '<section id="evidence"' not in text


def test_a_quick_report_leaves_out_what_takes_long(folder, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("computed, though not asked for")

    for name in ("compare_geometries", "rbpf"):
        monkeypatch.setattr(reconstruction, name, refused)
    bare, page = tmp_path / "bare", tmp_path / "quick.html"
    shutil.copytree(folder / "one", bare, ignore=shutil.ignore_patterns("findings"))
    assert run("report", bare, "--quick", "--config", folder / "tiny.toml", "-o", page, "-q") == 0
    keys = re.findall(r'<section id="([^"]+)"', page.read_text())
    assert keys[:4] == ["verdict", "attractor", "forecast", "power"]
    assert {"geometry", "filter", "evidence"}.isdisjoint(keys)


def test_a_second_report_computes_nothing_that_takes_long(folder, tmp_path, monkeypatch):
    words = ("report", folder / "one", "--config", folder / "tiny.toml", "-o", tmp_path / "x.html", "-q")
    assert run(*words) == 0

    def refused(*_, **__):
        raise AssertionError("computed again")

    for name in ("compare_geometries", "rbpf"):
        monkeypatch.setattr(reconstruction, name, refused)
    monkeypatch.setattr(sys.modules["palrnn.tuning.saem"], "_iterate", refused)
    assert run(*words) == 0


def test_a_reference_can_be_given(folder, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(folder / "one", bare)
    np.save(tmp_path / "held.npy", np.load(bare / "reference.npy"))
    (bare / "reference.npy").unlink()
    page = tmp_path / "x.html"
    words = ("report", bare, "--no-tune", "--config", folder / "tiny.toml", "-o", page, "-q")
    assert run(*words) == 1
    assert run(*words, "--reference", tmp_path / "held.npy") == 0
    assert page.is_file()


def test_a_reference_takes_the_place_of_the_held_out_part(folder, tmp_path, capsys):
    np.save(tmp_path / "other.npy", np.load(folder / "one" / "reference.npy")[:333])
    words = ("report", folder / "one", "--quick", "--config", folder / "tiny.toml", "--json")
    assert run(*words, "-o", tmp_path / "x.html", "--reference", tmp_path / "other.npy") == 0
    found = json.loads(capsys.readouterr().out)["runs"][0]
    assert found["facts"]["Data"]["held-out steps"] == 333
    assert run("report", "--help") == 0
    assert "held-out part" in " ".join(capsys.readouterr().out.split())


def test_noise_can_be_given(folder, tmp_path, capsys):
    words = ("report", folder / "one", "--no-tune", "--config", folder / "tiny.toml", "--json")
    assert run(*words, "-o", tmp_path / "x.html", "--observation-std", 0.3, "--gate-std", 0.2) == 0
    found = json.loads(capsys.readouterr().out)["runs"][0]["diagnostics"]
    assert (found["process_std"], found["observation_std"], found["gate_std"]) == (0.1, 0.3, 0.2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none/"], "none: no such folder"),
        (["{one}", "-o", "none/x.html"], "the folder"),
        (["{one}", "--gate-std", "-1"], "gate_std"),
        (["{one}", "--config", "{bad}"], "particles"),
    ],
)
def test_errors_are_one_line(folder, tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("[filter]\nparticles = 0\n")
    filled = [word.format(one=folder / "one", bad=tmp_path / "bad.toml") for word in words]
    assert run("report", *filled, "-q") == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "report.html").exists()


def test_help_has_an_example(capsys):
    assert run("report", "--help") == 0
    assert "palrnn report run/ -o report.html" in capsys.readouterr().out
