"""Training and tuning go on from what a fuzzer made of their files, or say why not; the process survives."""

from __future__ import annotations

import pytest

from torture.resumes import resumed


@pytest.mark.parametrize("kind", ["train", "tune"])
def test_a_run_survives_whatever_is_in_its_file(tmp_path, kind):
    # the long run in torture/ tries 12,000 of each
    seen = resumed(kind, tmp_path, count=200, seconds=60.0, seed=1)
    assert seen["faults"] == []
    assert seen["continued"] + seen["refused"] == seen["tried"]
    assert seen["tried"] > 20
