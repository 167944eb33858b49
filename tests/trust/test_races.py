"""Two writers at once in one folder: one writes, the other is told who."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from torture.run import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_of_two_writers_one_is_refused_and_the_folder_is_the_others(tmp_path, pairs):
    # the first pair trains; the torture races many, of all commands
    words = [sys.executable, "-m", "torture.races", str(tmp_path), "--pairs", str(pairs), "--seed", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["faults"] == []
    assert seen["pairs"] == pairs
