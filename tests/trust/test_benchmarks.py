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


_FIGURES = """
import sys
sys.path.insert(0, {here!r})
from clock import figure
figure("one pass, M=30", {value}, "ms")
"""


def test_figures_are_kept_once_for_each_processor_and_version(tmp_path, capfd, monkeypatch):
    monkeypatch.syspath_prepend(str(run.HERE))
    import history

    monkeypatch.setattr(history, "FILE", tmp_path / "history.csv")
    kept = tmp_path / "history.csv"
    page = tmp_path / "page.md"
    page.write_text(f"before\n{history.BEGIN}\nold\n{history.END}\nafter\n")
    first = history.Row("a processor", "0.1.0", "speed", "one pass", "3", "ms")
    other = first._replace(version="0.2.0", value="2")
    history.record([other, first], kept)
    rows = history.record([first._replace(value="2.5")], kept)
    assert rows == history.read(kept) == [first._replace(value="2.5"), other]
    assert not list(tmp_path.glob(".*"))
    history.show(rows, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| a processor | 0.1.0 | speed | one pass | 2.5 ms |" in text


def test_a_benchmark_tells_its_figures(tmp_path, capfd):
    (tmp_path / "speed.py").write_text(_FIGURES.format(here=str(run.HERE), value=12.3456))
    code, missed, figures = run.run(tmp_path / "speed.py")
    assert (code, missed) == (0, [])
    assert figures == [{"figure": "one pass, M=30", "value": "12.35", "unit": "ms"}]


def test_the_page_shows_the_committed_history(monkeypatch):
    monkeypatch.syspath_prepend(str(run.HERE))
    import history

    rows = history.read()
    assert rows
    assert len({row.key for row in rows}) == len(rows)
    assert history.shown(rows) in history.PAGE.read_text()
