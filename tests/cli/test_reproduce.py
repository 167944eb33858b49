"""`palrnn reproduce` and `palrnn status` as a user calls them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from palrnn.cli.main import main
from palrnn.engine.folders import writable_folder


def call(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def a_second_command_is_told_who_writes(folder: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    command = [sys.executable, "-m", "palrnn.cli.main", "reproduce", "report", "-o", str(folder)]
    with writable_folder(folder, "sweep", "testing"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"is being written by process {os.getpid()}" in done.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_study_is_run_reported_and_not_repeated_nor_written_by_two(tmp_path: Path, capsys) -> None:
    folder = str(tmp_path / "run")
    words = ("reproduce", "toy", "-o", folder, "--workers", "1", "--json")
    code, out, _ = call(capsys, *words, "--scale", "smoke")
    assert code == 0
    done = json.loads(out)
    assert (done["before"], done["done"], done["failed"], done["blocked"]) == (0, 5, [], 0)
    code, out, _ = call(capsys, *words)
    assert json.loads(out)["before"] == 5
    a_second_command_is_told_who_writes(Path(folder))
    code, out, _ = call(capsys, "status", folder, "--json")
    status = json.loads(out)
    assert (code, status["alive"], status["kinds"]["toy"]["done"]) == (0, False, 5)
    assert status["seconds_left"] is None
    code, out, _ = call(capsys, "status", folder)
    assert re.search(r"\ntoy +5 +0 +5\n", out)
    assert "not running" in out
    assert "time left: unknown yet" in out


def test_mistakes_are_one_sentence(tmp_path: Path, capsys) -> None:
    folder = str(tmp_path / "none")
    for words, message in [
        (("status", folder), "no results of `palrnn reproduce` here"),
        (("reproduce", "all", "-o", folder), "no results of `palrnn reproduce` here"),
        (("reproduce", "report", "-o", folder), "no results of `palrnn reproduce` here"),
        (("reproduce", "everything", "-o", folder, "--scale", "smoke"), "study must be one of"),
        (("reproduce", "all", "-o", folder, "--scale", "vast"), "scale must be one of smoke, quick, paper"),
    ]:
        code, out, err = call(capsys, *words)
        assert (code, out) == (1, "")
        assert err.startswith("palrnn: error: ")
        assert message in err
        assert err.count("\n") == 1


def test_nothing_is_written_where_something_else_is(tmp_path: Path, capsys) -> None:
    (tmp_path / "toy.csv").write_text("my own")
    (tmp_path / "page.md").write_text("# My page\n")
    words = ("reproduce", "toy", "--scale", "smoke", "--workers", "1")
    for options, message in [
        (("-o", str(tmp_path)), "holds files that are not of a sweep"),
        (("-o", ""), "must have a name, got ''"),
        (("-o", str(tmp_path / "page.md")), "exists and is not a folder"),
        (("-o", str(tmp_path / "run"), "--page", str(tmp_path / "page.md")), "is not from this command"),
        (("-o", str(tmp_path / "run"), "--page", str(tmp_path / "no" / "page.md")), "does not exist"),
        (("-o", str(tmp_path / "run"), "--scheduler", "tcp://127.0.0.1:9"), "give one of them"),
    ]:
        code, out, err = call(capsys, *words, *options)
        assert (code, out) == (1, "")
        assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.md", "toy.csv"]
    assert (tmp_path / "toy.csv").read_text() == "my own"
