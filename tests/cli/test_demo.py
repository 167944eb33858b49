"""`palrnn demo`: from nothing to a report."""

from __future__ import annotations

import json

import pytest
from command_line import run
from tiny_reconstruction import TINY

from palrnn.engine.progress import quiet
from palrnn.runs import Reconstruction

# the demo's own, so that what it computed is found
_SMALL = {"iterations": 6, "windows": 32, "particles": 128, "heldout_windows": 40}


@pytest.mark.slow
def test_a_small_demo_writes_a_run_and_a_report(tmp_path, capsys):
    TINY.to_toml(tmp_path / "tiny.toml")
    words = ("demo", "-o", tmp_path / "demo", "--updates", 200, "--config", tmp_path / "tiny.toml")
    assert run(*words) == 0
    printed = capsys.readouterr()
    assert str(tmp_path / "demo" / "report.html") in printed.out.splitlines()[-1]
    assert "training" in printed.err
    # the verdict is the last card, right above the place of the report
    cards = [line.partition(":")[0] for line in printed.out.splitlines() if line and not line.startswith(" ")]
    assert cards[-2:] == ["Verdict", "report"]
    held = {
        "checkpoint.safetensors",
        "reference.npy",
        "config.toml",
        "history.csv",
        "report.html",
        "report.toml",
    }
    assert held <= {file.name for file in (tmp_path / "demo").iterdir()}
    # the same command again finds everything there: what takes time to compute is not written again
    findings = tmp_path / "demo" / "findings"
    names = {file.stem.partition("-")[0] for file in findings.iterdir()}
    assert names == {"invariants", "diagnostics", "tuning"}
    computed = [tmp_path / "demo" / "checkpoint.safetensors", *findings.rglob("*.safetensors")]
    computed += [findings / "diagnostics.json"]
    written = [file.stat().st_mtime_ns for file in computed]
    assert run(*words, "--json") == 0
    assert [file.stat().st_mtime_ns for file in computed] == written
    result = json.loads(capsys.readouterr().out)
    assert result["report"] == str(tmp_path / "demo" / "report.html")


@pytest.mark.slow
def test_the_demo_tells_the_story_of_the_paper(tmp_path, capsys):
    assert run("demo", "-o", tmp_path / "demo", "--whole", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["headlines"][0]["label"] == "Verdict"
    assert len(result["headlines"]) >= 6
    assert (tmp_path / "demo" / "findings" / "geometry.json").is_file()
    found = json.loads((tmp_path / "demo" / "findings" / "invariants.json").read_text())["found"]
    tuning = Reconstruction.load(tmp_path / "demo").tuning(progress=quiet, **_SMALL)
    stages = [tuning.row(name) for name in ("baseline", "calib", "full")]
    # a good model: no further from the data than stretches of the data from each other, and chaotic
    assert found["hard"]["dstsp"] < found["dstsp_floor"]["high"]
    assert found["hard"]["exponents"][0] > 0.5
    # tuning the drift raises the evidence and loses the chaos
    evidence = [stage["heldout_evidence"] for stage in stages]
    assert evidence[2] > evidence[1] > evidence[0]
    assert stages[2]["lyapunov"] < stages[0]["lyapunov"] - 0.3
    assert (tmp_path / "demo" / "report.html").stat().st_size < 3e6
