"""The ways to steadier evidence that a benchmark compares estimate the same evidence as enumeration."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from oracles.gate_paths import with_orthant_probabilities
from oracles.small_models import drawn_series, gated_model

_FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "paper_evidence_variance.py"
_SPEC = importlib.util.spec_from_file_location("paper_evidence_variance", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
ways = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(ways)


@pytest.mark.slow
@pytest.mark.parametrize("way", list(ways.WAYS))
def test_every_way_is_unbiased(way):
    model = gated_model(2, gate_std=0.3)
    x = drawn_series(model, 4)
    exact = np.log(with_orthant_probabilities(model, x).evidence)
    logs = [ways.log_evidence(model, x, 20, ways.WAYS[way], seed) for seed in range(400)]
    relative = np.exp(np.array(logs) - exact)
    # 400 passes: 4 standard errors, each below 2 %
    error = relative.std(ddof=1) / 20.0
    assert error < 0.02
    assert abs(relative.mean() - 1.0) < 4.0 * error
