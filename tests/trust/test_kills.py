"""kill -9 at random moments, then the same command again: the bytes of a run that was never disturbed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from torture.run import ROOT


# `train` is killed in tests/forcing, `reproduce` in tests/paper, and all fifty times in torture/
@pytest.mark.parametrize(
    "command",
    [
        "zoo",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("search", "tune", "geometry", "report")),
    ],
)
def test_a_killed_command_continues_to_the_same_bytes(tmp_path, command):
    words = [sys.executable, "-m", "torture.kills", command, str(tmp_path), "--kills", "2", "--seed", "3"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert not seen["faults"], "\n".join(seen["faults"])
    assert seen["kills"] == 2
