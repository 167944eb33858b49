"""Training tasks: the data is what the paper describes, and a result is a usable checkpoint."""

from __future__ import annotations

import json

import numpy as np
import pytest

from palrnn.data import lorenz63
from palrnn.invariants import dstsp
from palrnn.model import ALRNN, checkpoint_bytes, checkpoint_from_bytes
from palrnn.paper.models import Regime, checkpoint_task, invariants_task, measure_invariants
from palrnn.paper.presets import load_preset
from palrnn.paper.series import reference_series, training_series, tuning_series
from palrnn.sweeps import Job, Task, execute

SMOKE = load_preset("smoke")
REGIME = Regime(0.1, 0.1, 16, 0)


def done(task: Task, **inputs: bytes) -> bytes:
    outcome = execute(Job(task.hash, task.kind.function, task.kind.suffix, task.identity, inputs))
    assert outcome.error is None, outcome.error
    assert outcome.data is not None
    return outcome.data


def test_training_data_is_standardised_and_has_its_noise_levels() -> None:
    data = load_preset("paper").data
    series = training_series(data, 0.3, 0.5)
    assert (series.train.shape, series.test.shape) == ((80_000, 3), (20_000, 3))
    np.testing.assert_allclose(series.train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(series.train.std(axis=0), 1, rtol=1e-12)
    # third differences of a smooth path are small, those of white noise s have variance 20 s^2; with noise of
    # half a clean deviation s = 0.5 / sqrt(1.25), known to 1 % from 80,000 correlated differences
    rough = np.sqrt(np.diff(series.train, 3, axis=0).var(axis=0) / 20)
    np.testing.assert_allclose(rough, 0.5 / np.sqrt(1.25), rtol=0.03)
    # the noise has the deviation that the series says: 80,000 draws tell it to 0.25 %, differences of white
    # noise somewhat less
    np.testing.assert_allclose(series.noise, rough, rtol=0.03)
    np.testing.assert_allclose(series.noise, 0.5 / np.sqrt(1.25), rtol=0.01)


def test_noise_levels_have_data_of_their_own_and_seeds_share_it() -> None:
    data = SMOKE.data
    first, again = training_series(data, 0.1, 0.1), training_series(data, 0.1, 0.1)
    assert (first.train == again.train).all()
    for levels in [(0.1, 0.5), (0.5, 0.1)]:
        other = training_series(data, *levels)
        # unrelated chaotic stretches: correlations of a few correlated thousand steps stay well below 1
        assert abs(np.corrcoef(first.train[:, 0], other.train[:, 0])[0, 1]) < 0.5


def test_tuning_data_has_room_for_all_held_out_windows_and_they_are_not_the_training_ones() -> None:
    preset = load_preset("paper")
    series = tuning_series(preset.evidence.data, preset.data.dt)
    assert series.train.shape == (4, 4000, 3)
    np.testing.assert_allclose(series.train.reshape(-1, 3).std(axis=0), 1, rtol=1e-12)
    windows = [(series.heldout.shape[1] - 1) // length * 4 for length in preset.evidence.lengths]
    assert min(windows) >= 120
    for a, b in zip(series.train, series.heldout, strict=True):
        steps = min(len(a), len(b))
        assert abs(np.corrcoef(a[:steps, 0], b[:steps, 0])[0, 1]) < 0.5


def test_a_training_task_gives_the_same_bytes_again_and_a_checkpoint_that_runs() -> None:
    task = checkpoint_task(SMOKE, REGIME)
    data = done(task)
    assert done(task) == data
    checkpoint = checkpoint_from_bytes(data)
    assert checkpoint.drift.latent_dim == 6
    assert checkpoint.training["process_std"] == 0.1
    assert checkpoint.training["recent_loss"] < 3.0  # predicting the mean scores the three unit variances
    series = training_series(SMOKE.data, 0.1, 0.1)
    assert checkpoint.standardizer is not None
    np.testing.assert_array_equal(checkpoint.standardizer.mean, series.standardizer.mean)
    np.testing.assert_array_equal(checkpoint.arrays["x1"], series.test[0])


def test_invariants_are_those_of_the_public_functions_in_raw_coordinates() -> None:
    data = done(checkpoint_task(SMOKE, REGIME))
    task = invariants_task(SMOKE, checkpoint_task(SMOKE, REGIME))
    measured = json.loads(done(task, model=data))["result"]
    checkpoint = checkpoint_from_bytes(data)
    states = checkpoint.drift.rollout(checkpoint.arrays["x1"], 1800, 200).states
    assert checkpoint.standardizer is not None
    raw = checkpoint.standardizer.inverse(states[:, :3])
    reference = reference_series(1800, 200, 0.01)
    assert measured["dstsp"] == dstsp(raw, reference, bins=10).value
    # the reference is the true attractor: another stretch of it is far closer than a barely trained model
    assert dstsp(lorenz63(1800, discard=9000, seed=5), reference, bins=10).value < measured["dstsp"]


@pytest.mark.parametrize(("growth", "diverged"), [(0.5, False), (1.5, True)])
def test_a_model_that_diverges_has_no_exponent_but_a_result(growth: float, diverged: bool) -> None:
    model = ALRNN(np.full(3, growth), np.zeros((3, 3)), np.zeros(3), np.eye(3), 0)
    series = training_series(SMOKE.data, 0.1, 0.1)
    data = checkpoint_bytes(model, standardizer=series.standardizer, arrays={"x1": series.test[0]})
    measured = measure_invariants(
        dict(invariants_task(SMOKE, checkpoint_task(SMOKE, REGIME)).settings), {"model": data}
    )
    assert (measured["diverged_at"] is not None) == diverged
    if not diverged:
        assert measured["lyapunov"] == pytest.approx(np.log(growth) / 0.01)
