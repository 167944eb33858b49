"""The page of questions names commands and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import palrnn
from palrnn.cli.main import main
from palrnn.inference import Forecast

PAGE = Path(__file__).resolve().parents[2] / "docs" / "questions.md"
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text(), re.M)[1:]


def test_every_command_of_the_page_exists_and_every_command_is_on_it(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out.partition("Commands")[2]
    known = set(re.findall(r"^\W*([a-z]+(?:-[a-z]+)?)  +\S", listed, re.M))
    assert len(known) > 10
    spelled = [words for _, command, _ in ROWS for words in re.findall(r"`([^`]+)`", command)]
    named = {words.removeprefix("palrnn ").split()[0] for words in spelled}
    assert named <= known
    assert known - named == {"demo"}


def test_every_function_of_the_page_exists():
    homes = (palrnn, palrnn.Reconstruction, palrnn.Dataset, Forecast)
    for question, _, python in ROWS:
        for words in re.findall(r"`([^`]+)`", python):
            for name in re.findall(r"(?<!\w)([A-Za-z_]\w*)\(", words) or [words.split(".")[-1]]:
                assert name == "print" or any(hasattr(home, name) for home in homes), (question, name)
