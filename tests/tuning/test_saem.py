"""The whole of particle-SAEM on small models: what each configuration changes, recovery, resuming."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from oracles.linear_em import em_update

from palrnn.engine.progress import quiet
from palrnn.engine.seeds import generator
from palrnn.model import ALRNN, PALRNN, Forcing, load_checkpoint
from palrnn.tuning import SAEMConfig, saem
from palrnn.tuning.estep import expectation
from palrnn.tuning.saem import provisional
from palrnn.tuning.sequences import window_pool

SMALL = {"length": 12, "iterations": 3, "windows": 6, "particles": 16, "paths": 2, "heldout_windows": 5}


def _drift(gated=2, seed=0):
    """A stable oscillating network with 4 units, two of them observed."""
    rng = np.random.default_rng(seed)
    W = 0.1 * rng.standard_normal((4, 4))
    W[0, 1], W[1, 0], W[2, 3], W[3, 2] = 0.4, -0.4, 0.3, -0.3
    E = np.vstack([np.eye(2), 0.5 * rng.standard_normal((2, 2))])
    return ALRNN(np.array([0.85, 0.85, 0.6, 0.6]), W, 0.1 * rng.standard_normal(4), E, gated)


def _data(model, count=2, steps=301, seed=0):
    return np.stack([model.sample(np.zeros(2), steps, seed=seed + j).observations for j in range(count)])


@pytest.fixture(scope="module")
def model():
    return PALRNN(_drift(), 0.3, 0.2, 0.5)


@pytest.fixture(scope="module")
def data(model):
    return _data(model)


def _same(one: PALRNN, other: PALRNN) -> bool:
    return (
        np.array_equal(one.drift.theta, other.drift.theta)
        and np.array_equal(one.drift.E, other.drift.E)
        and np.array_equal(one.process.std, other.process.std)
        and np.array_equal(one.observation.std, other.observation.std)
        and one.gate_std == other.gate_std
    )


def test_baseline_changes_nothing_and_only_evaluates(model, data):
    result = saem(model, data, SAEMConfig(configuration="baseline", **SMALL), heldout=data, reference=data[0])
    assert result.model is model
    assert len(result.history) == 1
    assert np.isfinite(result.history["heldout_evidence"][0])
    assert np.isfinite(result.history["dstsp"][0])


def test_calib_moves_the_noise_and_leaves_the_hard_gated_rollout_bit_for_bit(model, data):
    result = saem(model, data, SAEMConfig(configuration="calib", **SMALL))
    assert result.model.process.std != model.process.std
    assert result.model.observation.std != model.observation.std
    assert result.model.gate_std == model.gate_std
    before, after = (m.drift.rollout(np.ones(2), 500).states for m in (model, result.model))
    assert np.array_equal(before, after)


def test_full_moves_drift_and_noise_and_keeps_the_embedding(model, data):
    result = saem(model, data, SAEMConfig(**SMALL))
    assert not np.array_equal(result.model.drift.theta, model.drift.theta)
    assert result.model.process.std != model.process.std
    assert np.array_equal(result.model.drift.E, model.drift.E)


@pytest.mark.parametrize("configuration", ["full", "anchored"])
def test_the_number_of_threads_changes_nothing(model, data, configuration):
    config = SAEMConfig(configuration=configuration, robbins_monro=True, learn_gate_std=True, **SMALL)
    one, three = (saem(model, data, config, heldout=data, reference=data[0], threads=n) for n in (1, 3))
    assert _same(one.model, three.model)
    for name in one.history.columns:
        np.testing.assert_array_equal(one.history[name], three.history[name])


def test_the_seed_decides_the_windows_and_the_samples(model, data):
    config = SAEMConfig(**SMALL)
    assert _same(saem(model, data, config, seed=3).model, saem(model, data, config, seed=3).model)
    assert not _same(saem(model, data, config, seed=3).model, saem(model, data, config, seed=4).model)


@pytest.mark.parametrize("robbins_monro", [False, True])
def test_an_interrupted_run_continues_to_the_same_bytes(model, data, tmp_path, robbins_monro):
    config = SAEMConfig(configuration="anchored", robbins_monro=robbins_monro, evaluate_every=2, **SMALL)
    given = {"heldout": data, "reference": data[0]}

    def stop(done, total, figures):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saem(model, data, config, run=tmp_path / "cut", progress=stop, **given)
    assert load_checkpoint(tmp_path / "cut" / "checkpoint.safetensors").training["saem"]["iteration"] == 2
    cut = saem(model, data, config, run=tmp_path / "cut", progress=quiet, **given)
    whole = saem(model, data, config, run=tmp_path / "whole", progress=quiet, **given)
    assert _same(cut.model, whole.model)
    files = [tmp_path / name / "checkpoint.safetensors" for name in ("cut", "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()
    for result, name in ((cut, "cut.csv"), (whole, "whole.csv")):
        result.history.to_csv(tmp_path / name)
    assert (tmp_path / "cut.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_run_folder_refuses_other_settings_and_other_data(model, data, tmp_path):
    config = SAEMConfig(**SMALL)
    saem(model, data, config, run=tmp_path)
    with pytest.raises(ValueError, match="other settings"):
        saem(model, data, config.changed(ridge=0.1), run=tmp_path)
    with pytest.raises(ValueError, match="another seed"):
        saem(model, data, config, seed=1, run=tmp_path)
    with pytest.raises(ValueError, match="another model or data"):
        saem(model, data + 0.1, config, run=tmp_path)


@pytest.mark.parametrize("target", ["paper", "exact"])
def test_calib_recovers_the_noise_of_simulated_data(target):
    """Started a factor 2 off on both sides, `calib` finds both deviations within 15 %.

    EM trades process against observation noise slowly: 60 undamped iterations, not the paper's 8 damped ones.
    """
    truth = PALRNN(_drift(), 0.25, 0.2, 0.5)
    data = _data(truth, count=4, steps=601, seed=10)
    start = PALRNN(truth.drift, 0.5, 0.1, 0.5)
    config = SAEMConfig(
        configuration="calib",
        length=60,
        iterations=60,
        windows=12,
        particles=16,
        paths=4,
        blend=1.0,
        target=target,
    )
    tuned = saem(start, data, config).model
    assert tuned.process.std == pytest.approx(0.25, rel=0.15)
    assert tuned.observation.std == pytest.approx(0.2, rel=0.15)


def test_one_undamped_update_of_a_linear_model_is_exact_em_up_to_sampling(model):
    """With P = 0 the filter is exact and one particle is enough: only the states are sampled."""
    drift = _drift(gated=0)
    start = PALRNN(drift, 0.5, 0.3, 0.0, initial=0.4)
    data = _data(PALRNN(drift, 0.3, 0.2, 0.0), count=1, steps=61)
    config = SAEMConfig(
        length=60,
        iterations=1,
        windows=1,
        particles=1,
        paths=1,
        states_per_path=4000,
        ridge=0.0,
        blend=1.0,
    )
    tuned = saem(start, data, config).model
    F, h, q, r = em_update(
        data, np.diag(drift.A) + drift.W, drift.h, 0.25, 0.09, drift.embed, 0.16 * np.eye(4)
    )
    # 4000 draws of 60 correlated steps: moments are known to about 1 / sqrt(4000) of the posterior spread,
    # which the inverse Gram matrix (condition number about 20) enlarges
    np.testing.assert_allclose(np.diag(tuned.drift.A) + tuned.drift.W, F, atol=0.05)
    np.testing.assert_allclose(tuned.drift.h, h, atol=0.05)
    assert tuned.process.std**2 == pytest.approx(q, rel=0.02)
    assert tuned.observation.std**2 == pytest.approx(r, rel=0.02)


def test_robbins_monro_averages_the_statistics_and_adopts_their_solution(model, data):
    config = SAEMConfig(**SMALL | {"iterations": 2}, robbins_monro=True, step_exponent=0.7)
    pool = window_pool(list(data), config.length)
    current, average, paths = model, None, np.full((len(pool), 12, 2), np.nan)
    with ThreadPoolExecutor(1) as executor:
        for r in range(2):
            drawn = generator(5, 0, r).integers(0, len(pool), size=config.windows)
            new = expectation(current, pool[drawn], config, (5, 1, r), executor, paths[drawn]).statistics
            # steps 1 and 2^-0.7
            average = new if average is None else average.averaged(new, 0.6155722066724582)
            current = provisional(current, average, config)
    assert _same(saem(model, data, config, seed=5).model, current)


def test_gate_noise_is_learned_only_when_asked(model, data):
    kept = saem(model, data, SAEMConfig(**SMALL)).model
    learned = saem(model, data, SAEMConfig(**SMALL, learn_gate_std=True, target="exact")).model
    assert kept.gate_std == model.gate_std
    assert learned.gate_std != model.gate_std


def test_diagonal_noise_finds_which_coordinate_is_noisy():
    truth = PALRNN(_drift(), np.array([0.3, 0.3, 0.3, 0.3]), np.array([0.1, 0.6]), 0.5)
    start = PALRNN(truth.drift, 0.3, 0.3, 0.5)
    config = SAEMConfig(
        configuration="calib",
        length=60,
        iterations=20,
        windows=10,
        particles=32,
        paths=4,
        noise="diagonal",
    )
    tuned = saem(start, _data(truth, count=2, steps=601), config).model
    assert np.shape(tuned.process.std) == (4,)
    assert tuned.observation.std[1] == pytest.approx(0.6, rel=0.15)
    assert tuned.observation.std[0] < 0.25


def test_a_diverging_model_is_reported_not_raised(data):
    wild = _drift()
    wild = PALRNN(ALRNN(wild.A + 0.6, wild.W, wild.h, wild.E, wild.gated), 0.3, 0.3, 0.5)
    result = saem(wild, data, SAEMConfig(configuration="baseline", **SMALL), heldout=data, reference=data[0])
    history = result.history
    assert history["diverged_at"][0] > 0
    assert np.isnan(history["lyapunov"][0])
    assert history["outside"][0] == 1.0
    assert history["dstsp"][0] == np.inf


def test_missing_observations_are_skipped(model, data):
    holes = data.copy()
    holes[:, 5::7, 0] = np.nan
    holes[0, 24] = np.nan  # a left boundary: that window starts a row later
    result = saem(model, holes, SAEMConfig(**SMALL))
    assert np.isfinite(result.model.drift.theta).all()


def test_errors_name_the_argument(model, data):
    with pytest.raises(ValueError, match="model must be a PALRNN, got ALRNN"):
        saem(model.drift, data)
    with pytest.raises(ValueError, match=r"sequences\[0\] must be \(T, N\) with T >= 33"):
        saem(model, data[:, :20])
    with pytest.raises(ValueError, match="config must be a SAEMConfig"):
        saem(model, data, {"length": 3})
    with pytest.raises(ValueError, match="blend"):
        SAEMConfig(blend=0.0)
    with pytest.raises(
        ValueError, match="sequences must have a row without gaps that 12 rows follow, has none"
    ):
        saem(model, np.full((1, 40, 2), np.nan), SAEMConfig(**SMALL))


def test_an_interval_takes_the_place_of_a_forcing_from_before_but_not_of_one_given_with_it():
    config = SAEMConfig(forcing=Forcing.generalised(0.5, 4), windows=3)
    assert config.changed(tau=8) == SAEMConfig(forcing=Forcing.identity(8), windows=3)
    with pytest.raises(ValueError, match="forcing says all; leave out tau"):
        config.changed(tau=8, forcing=Forcing.identity(8))
