"""`palrnn reproduce` and `palrnn status` as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palrnn.cli.main import main


def call(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def test_a_study_is_run_reported_and_not_repeated(tmp_path: Path, capsys) -> None:
    folder = str(tmp_path / "run")
    words = ("reproduce", "toy", "-o", folder, "--workers", "1", "--json")
    code, out, _ = call(capsys, *words, "--scale", "smoke")
    assert code == 0
    done = json.loads(out)
    assert (done["before"], done["done"], done["failed"], done["blocked"]) == (0, 5, [], 0)
    code, out, _ = call(capsys, *words)
    assert json.loads(out)["before"] == 5
    code, out, _ = call(capsys, "status", folder, "--json")
    status = json.loads(out)
    assert (code, status["alive"], status["kinds"]["toy"]["done"]) == (0, False, 5)
    assert status["seconds_left"] is None
    code, out, _ = call(capsys, "status", folder)
    assert "toy              5 of 5" in out
    assert "not running" in out
    assert "time left: unknown yet" in out


def test_mistakes_are_one_sentence(tmp_path: Path, capsys) -> None:
    folder = str(tmp_path / "none")
    for words, message in [
        (("status", folder), "no results here yet"),
        (("reproduce", "all", "-o", folder), "no results here yet"),
        (("reproduce", "report", "-o", folder), "no results here yet"),
        (("reproduce", "everything", "-o", folder, "--scale", "smoke"), "study must be one of"),
        (("reproduce", "all", "-o", folder, "--scale", "vast"), "scale must be one of smoke, quick, paper"),
    ]:
        code, out, err = call(capsys, *words)
        assert (code, out) == (1, "")
        assert err.startswith("palrnn: error: ")
        assert message in err
        assert err.count("\n") == 1
