"""Workers die all the time and yet every task has its result, once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from torture.run import ROOT


@pytest.mark.slow
def test_a_sweep_over_dying_workers_gives_every_result_once(tmp_path):
    words = ["local", str(tmp_path / "sweep"), "--tasks", "150", "--every", "0.6"]
    done = subprocess.run(
        [sys.executable, "-m", "torture.load", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["faults"] == []
    assert seen["tasks"] == 150
    assert seen["kills"] >= 1
