"""The long run goes on where it was cut off, and does not pass off a short one as whole."""

from __future__ import annotations

import json
import sys

import pytest

from torture import run
from torture.page import reliability_page


@pytest.mark.parametrize(
    ("name", "enough", "short"),
    [
        ("kill train", {"kills": 50}, {"kills": 49}),
        ("races", {"pairs": 20}, {"pairs": 19}),
        (
            "resumes",
            {"runs": {"train": {"tried": 12_000, "lost": 0}, "tune": {"tried": 8_000, "lost": 0}}},
            {"runs": {"train": {"tried": 12_000, "lost": 0}, "tune": {"tried": 8_000, "lost": 1}}},
        ),
        ("claims", {}, None),
    ],
)
def test_less_than_was_promised_is_a_fault(name, enough, short):
    assert run._too_few(name, enough) == []
    if short is not None:
        assert run._too_few(name, short)


def test_a_stage_is_repeated_for_other_sources_or_after_faults(tmp_path, monkeypatch, capsys):
    sources = run.tree()
    good = {"pairs": 20, "commands": {"train": 20}, "faults": []}
    seen = {
        "races": good | {"tree": sources},
        "claims": {"readers": {}, "faults": [], "tree": "of before"},
        "faults": {"faults": ["one"], "tree": sources},
    }
    (tmp_path / "last.json").write_text(json.dumps(seen))
    monkeypatch.setattr(run, "_LAST", tmp_path / "last.json")
    tried = []
    monkeypatch.setattr(run, "ran", lambda name, *_: tried.append(name) or {"faults": []})
    words = ["run.py", "--only", "races", "claims", "faults", "--page", str(tmp_path / "page.md")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as left:
        run.main()
    assert left.value.code == 0
    assert sorted(tried) == ["claims", "faults"]
    assert "done for these sources: races" in capsys.readouterr().out
    kept = json.loads((tmp_path / "last.json").read_text())
    assert kept["races"] == seen["races"]
    assert kept["claims"] == {"faults": [], "tree": sources}
    assert (tmp_path / "page.md").read_text() == reliability_page(kept)
    assert "20 pairs" in (tmp_path / "page.md").read_text()
