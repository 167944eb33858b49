"""The numbers of an independent prototype at the paper's settings: the neighbourhood, not the digits."""

import warnings

import numpy as np
import pytest

from palrnn.data import Standardizer, add_observation_noise, lorenz63
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.geometry import GeometryConfig, compare_geometries
from palrnn.model import PALRNN


@pytest.fixture(scope="module")
def model_and_test_series():
    raw = lorenz63(100_000, process_std=0.1)
    noisy = add_observation_noise(raw, 0.1, scale=raw[:80_000].std(axis=0))
    standardizer = Standardizer.fit(noisy[:80_000])
    x = standardizer.transform(noisy)
    return train(x[:80_000], TrainConfig.paper(tau=16), progress=quiet).model, x[80_000:]


def segments(model_and_test_series, process_std, **budget):
    drift, test = model_and_test_series
    model = PALRNN(drift, process_std, 0.1, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [compare_geometries(model, test[k : k + 200], 16, **budget) for k in range(0, 16_000, 2000)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_trained_model_lies_near_the_reference_point(model_and_test_series):
    found = segments(model_and_test_series, 0.1, config=GeometryConfig.paper())
    for g in found:
        print(f"{g.observed.code_entropy:.2f} {g.observed.mir:.3f} {g.gap:.2f} {g.mismatch!r}")
    # reference: entropy 3.7 bits, MIR 0.91, gap 2.3, q90 -1.0, overlap 0.34, 7 negative directions;
    # medians over segments of another model, another series and 8 samples each
    assert np.median([g.observed.code_entropy for g in found]) == pytest.approx(3.7, abs=1.2)
    assert np.median([g.observed.mir for g in found]) == pytest.approx(0.93, abs=0.08)
    assert np.nanmedian([g.gap for g in found]) == pytest.approx(2.3, abs=0.7)
    assert np.median([g.mismatch.q90 for g in found]) == pytest.approx(-1.2, abs=0.7)
    assert np.median([g.overlap for g in found]) == pytest.approx(0.34, abs=0.08)
    assert all(g.mismatch.logdet_gap < 0 for g in found)
    # 8 samples, rank 7: every one of these directions is negative, and no other
    assert all(g.mismatch.negative == 7 for g in found)
    assert all(g.mismatch.null >= 20 for g in found)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_most_of_what_is_missing_is_the_state_and_not_the_gates(model_and_test_series):
    found = segments(model_and_test_series, 0.1)
    shares = [g.observed.trace_missing_switching / g.observed.trace_missing for g in found]
    print(np.round(shares, 4))
    assert np.median(shares) < 0.1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_process_noise_scaled_by_the_time_step_is_not_the_reference(model_and_test_series):
    # 0.1 per unit of time is 0.01 per step: the data surprises the model, and about all there is is missing
    found = segments(model_and_test_series, 0.01, config=GeometryConfig.paper())
    assert np.median([g.observed.mir for g in found]) > 0.97
