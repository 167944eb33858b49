"""`make bench` says which aims are missed, and fails only if it could not run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"
_SPEC = importlib.util.spec_from_file_location("benchmarks_run", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
run = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run)

_AIMS = """
import sys
sys.path.insert(0, {here!r})
from clock import aim
aim("quick", {quick})
aim("small", True)
"""


def ran(folder, capfd, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py"])
    code = run.main(folder)
    return code, capfd.readouterr().out


def test_a_missed_aim_is_listed_and_is_no_failure(tmp_path, capfd, monkeypatch):
    (tmp_path / "speed.py").write_text(_AIMS.format(here=str(run.HERE), quick=False))
    code, out = ran(tmp_path, capfd, monkeypatch)
    assert code == 0
    assert out.endswith("aims missed: \n  speed: quick\n")


def test_with_all_aims_reached_none_is_listed(tmp_path, capfd, monkeypatch):
    (tmp_path / "speed.py").write_text(_AIMS.format(here=str(run.HERE), quick=True))
    code, out = ran(tmp_path, capfd, monkeypatch)
    assert code == 0
    assert out.endswith("aims missed: none\n")


def test_a_benchmark_that_cannot_run_is_a_failure(tmp_path, capfd, monkeypatch):
    (tmp_path / "broken.py").write_text("raise SystemExit(3)\n")
    code, out = ran(tmp_path, capfd, monkeypatch)
    assert code == 1
    assert "failed to run: broken" in out
