"""The paper's finding on one trained model: evidence up, attractor lost; and what saves it."""

from __future__ import annotations

import pytest

from palrnn.data import Standardizer, add_observation_noise, lorenz63
from palrnn.data.systems import lorenz63_system
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.model import PALRNN
from palrnn.tuning import SAEMConfig, compare, comparison_configs, lorenz63_sequences


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_evidence_rises_from_baseline_to_calib_to_full_while_full_loses_the_attractor(capsys):
    scale = lorenz63_system().spread(0.01)
    x = add_observation_noise(lorenz63(80_000, process_std=0.1, seed=1), 0.1, scale=scale, seed=2)
    standardizer = Standardizer.fit(x)
    drift = train(standardizer.transform(x), TrainConfig.paper(), progress=quiet).model
    config = SAEMConfig(windows=30, particles=64, heldout_windows=60, reference_lyapunov=0.9056)
    found = compare(
        PALRNN(drift, 0.1, 0.1, 0.7),
        standardizer.transform(lorenz63_sequences(seed=1)),
        comparison_configs(config, [500.0]),
        heldout=standardizer.transform(lorenz63_sequences(seed=2)),
        reference=standardizer.transform(lorenz63(9000, seed=3)),
        progress=quiet,
    )
    with capsys.disabled():
        print(f"\n{found.table()}")
    baseline, calib, full, anchored = (found.row(n) for n in ("baseline", "calib", "full", "beta-500"))
    # steps of 0.05 and more against standard errors of 0.005; all four score the same windows
    assert baseline["heldout_evidence"] + 0.02 < calib["heldout_evidence"]
    assert calib["heldout_evidence"] + 0.02 < full["heldout_evidence"]
    assert calib["dstsp"] == baseline["dstsp"]
    assert calib["lyapunov"] == baseline["lyapunov"]
    # a collapsed attractor misses nearly all bins of the reference, which costs 14 nats
    assert full["dstsp"] > baseline["dstsp"] + 5.0
    assert full["lyapunov_error"] < -0.5
    assert abs(baseline["lyapunov_error"]) < 0.3
    # the anchor keeps the attractor and still beats calibration
    assert anchored["dstsp"] < baseline["dstsp"] + 1.0
    assert anchored["heldout_evidence"] > calib["heldout_evidence"]
