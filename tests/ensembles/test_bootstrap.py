"""Models trained on data drawn anew: their spread, held against what is known of a linear system."""

import re
from dataclasses import replace

import numpy as np
import pytest

import palrnn
from palrnn.ensembles import Ensemble
from palrnn.ensembles.bootstrap import _config
from palrnn.ensembles.reflection import own_series
from palrnn.ensembles.variation import alike, finite_distance, varied, varied_series
from palrnn.ensembles.work import BASE, DATA, member_task, resampled
from palrnn.forcing import TrainConfig
from palrnn.geometry import gibbs_posterior
from palrnn.sweeps import Task

TRUTH = np.array([[0.8, 0.25], [-0.3, 0.6]])
QUICK = {"latent_dim": 2, "gated": 0, "tau": 1, "input_noise": 0.0, "sequence_length": 20}


def series(steps=2500, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((steps + 100, 2))
    for t in range(1, len(x)):
        x[t] = TRUTH @ x[t - 1] + 0.3 * rng.standard_normal(2)
    return x[100:]


def linear_part(model):
    return model.W + np.diag(model.A)


@pytest.fixture(scope="module")
def base():
    return palrnn.reconstruct(series(), updates=1200, learning_rate=3e-3, **QUICK)


def test_the_spread_is_that_of_the_estimate(base):
    found = palrnn.bootstrap(series(), base=base, models=16, method="blocks", updates=700, workers=1)
    assert found.theta.shape == (16, 8)
    assert found.diverged == 0
    spread = np.array([linear_part(model) for model in found.models]).std(axis=0, ddof=1)
    x = base.standardizer.transform(series()[:2000])
    draws = gibbs_posterior(base.drift, x, forcing=1, prior_std=10.0).sample(400)
    expected = np.array([linear_part(model) for model in draws]).std(axis=0)
    # 16 models know a deviation to 18 %, four of them to 9; training in batches adds some of its own
    assert 0.7 < np.sqrt((spread**2 / expected**2).mean()) < 1.5
    low, high = found.interval(linear_part, 0.9)
    assert (high - low > spread).all()


def test_seeds_start_anew_on_the_same_data(base):
    found = palrnn.bootstrap(series(), base=base, models=3, method="seeds", updates=30, workers=1)
    assert found.method == "seeds"
    assert (found.theta.std(axis=0) > 0).all()


def test_seeds_keep_the_best_as_the_first_model_does():
    measured = {"updates": 20, "evaluate_every": 10, "keep": "best"}
    first = palrnn.reconstruct(series(500), **measured, **QUICK)
    assert len(palrnn.bootstrap(series(500), base=first, models=2, method="seeds", workers=1).models) == 2


@pytest.mark.parametrize("method", ["blocks", "seeds"])
def test_the_spread_of_a_response_to_inputs_is_around_the_response(method):
    rng = np.random.default_rng(2)
    s, x = rng.standard_normal((1500, 1)), np.zeros((1500, 2))
    for t in range(1, len(x)):
        x[t] = TRUTH @ x[t - 1] + np.array([1.0, 0.5]) * s[t - 1] + 0.3 * rng.standard_normal(2)
    first = palrnn.reconstruct(x, inputs=s, updates=2000, learning_rate=0.02, **QUICK)
    how = {"models": 4, "method": method, "updates": 2000, "workers": 1}
    found = palrnn.bootstrap(x, inputs=s, base=first, **how)
    assert found.diverged == 0
    raw = [model.C[:, 0] * first.standardizer.std / first.input_standardizer.std for model in found.models]
    # 1,200 rows with noise 0.3 know a response to 0.01; batches of 16 sequences add as much again
    np.testing.assert_allclose(np.mean(raw, axis=0), [1.0, 0.5], atol=0.05)
    assert (np.std(raw, axis=0) > 0).all()
    assert np.isfinite(found.error_bars(steps=200, discard=20).lyapunov).all()
    with pytest.raises(ValueError, match="inputs must be the 1 that base was trained with, got 0"):
        palrnn.bootstrap(x, base=first, **how)


def test_denoised_blocks_are_nearer_to_the_truth_than_noisy_ones():
    rng, turn = np.random.default_rng(0), 0.995 * np.array([[0.98, -0.2], [0.2, 0.98]])
    z = np.zeros((3100, 2))
    for t in range(1, len(z)):
        z[t] = turn @ z[t - 1] + 0.1 * rng.standard_normal(2)
    x = z[100:] + 0.3 * z.std() * rng.standard_normal((3000, 2))
    first = palrnn.reconstruct(x, updates=800, learning_rate=2e-2, **QUICK)
    off = {}
    for method in ("blocks", "denoised"):
        found = palrnn.bootstrap(x, base=first, models=3, method=method, updates=800, workers=1)
        parts = np.mean([linear_part(model) for model in found.models], axis=0)
        off[method] = np.abs(parts - turn).max()
    # three tenths of noise make a forced model contract by some eight per cent a step
    assert off["denoised"] < 0.5 * off["blocks"]
    assert off["blocks"] > 0.05


def test_varied_models_differ_in_size_and_forcing_and_forecast_each_by_itself():
    x = palrnn.lorenz63(1500, seed=0)
    first = palrnn.reconstruct(x, latent_dim=8, gated=4, updates=60, sequence_length=50)
    found = palrnn.bootstrap(x, base=first, models=5, method="varied", workers=1)
    assert found.diverged + len(found.models) == 5
    assert len({model.latent_dim for model in found.models}) > 1
    assert all(model.latent_dim - model.gated == 4 for model in found.models)
    ahead = found.forecast(x[:20], 6, paths=9, particles=8)
    assert ahead.paths.shape[1:] == (6, 3)
    assert len(ahead.paths) >= 9
    # hidden units of other models mean something else: they filter by themselves wherever they are given
    given = first.forecast(x[:20], 6, posterior=found, paths=9, particles=8)
    np.testing.assert_array_equal(given.paths, ahead.paths)
    assert f"parameters ({len(found.models)} models by varied)" in repr(given)
    bars = first.bars(found, count=3, steps=200, discard=20, gap_rows=0)
    assert bars.draws.shape[0] == 3


@pytest.mark.parametrize(
    ("method", "optimizer", "first", "expected"),
    [
        ("varied", "soap", 60_000, 6000),  # a tenth
        ("reflected", "soap", 20_000, 3000),  # not below what a model needs
        ("reflected", "soap", 1000, 1000),  # nor beyond the first
        ("varied", "radam", 60_000, 60_000),
        ("blocks", "soap", 60_000, 12_000),
        ("seeds", "soap", 60_000, 60_000),
    ],
)
def test_models_have_as_many_updates_as_their_method_needs(base, method, optimizer, first, expected):
    training = base.record.training.changed(updates=first, optimizer=optimizer)
    longer = replace(base, record=base.record.changed(training=training))
    assert _config(longer, method, None).updates == expected
    assert _config(longer, method, 77).updates == 77


def test_settings_vary_within_their_bounds_and_models_unlike_the_data_are_left_out():
    config = palrnn.TrainConfig(latent_dim=30, gated=20)
    drawn = [varied(config, 0, k) for k in range(200)]
    assert drawn[3] == varied(config, 0, 3)
    gates = np.array([each.gated for each in drawn])
    assert (gates.min() >= 12, gates.max() <= 32, gates.std() > 3) == (True, True, True)
    assert {each.latent_dim - each.gated for each in drawn} == {10}
    steady = [each for each in drawn if each.forcing.interval == 1]
    assert 70 < len(steady) < 130
    assert {each.forcing.interval for each in drawn if each not in steady} <= set(range(8, 33))
    turn = np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    same, dead, wild = (palrnn.ALRNN(np.zeros(2), f * turn, np.zeros(2), np.eye(2), 0) for f in (1, 0.9, 1.1))
    x = same.rollout(np.array([1.0, 0.0]), 2000).states
    far = [finite_distance(model, [x]) for model in (same, dead, wild)]
    assert far[2] is None
    # also where most models have ended
    assert alike([far[0], *far[1:] * 2, far[0], far[1]]) == [True, *[False] * 4, True, False]


def test_varied_models_learn_from_less_noise_by_windows_of_their_own():
    states = palrnn.lorenz63(3000, seed=0)
    x = palrnn.add_observation_noise(states, 0.1, seed=1)
    drawn = [varied_series([x], 0, k)[0] for k in range(4)]
    for each in drawn:
        assert ((each - states).std(axis=0) < 0.5 * (x - states).std(axis=0)).all()
    assert not np.array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(varied_series([states], 0, 1)[0], states)
    # a column that one trial lacks is smoothed in the other
    part = np.where([True, True, False], x[:1200], np.nan)
    one, two = varied_series([part, x[1200:2000]], 0, 0)
    assert np.isnan(one[:, 2]).all()
    assert ((two - states[1200:2000]).std(axis=0) < 0.5 * (x - states)[1200:2000].std(axis=0)).all()


def test_a_model_makes_series_like_the_data_with_their_gaps_and_noise():
    turn = np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    model, wild = (palrnn.ALRNN(np.zeros(2), f * turn, np.zeros(2), np.eye(2), 0) for f in (1, 1.1))
    states = model.rollout(np.array([1.4, 0.0]), 1000).states
    x = palrnn.add_observation_noise(states, 0.1, seed=1)
    x[700] = np.nan
    x[:300, 1] = np.nan
    made = own_series(model, [x[:300], x[300:]], 5)
    assert [each.shape for each in made] == [(300, 2), (700, 2)]
    np.testing.assert_array_equal(np.isnan(np.concatenate(made)), np.isnan(x))
    # a rotation keeps its radius, so what is off it is noise: of a tenth of the deviation, 1, by 699 rows
    off = np.linalg.norm(np.concatenate(made), axis=1)
    assert np.nanstd(off) == pytest.approx(0.1, rel=0.15)
    assert own_series(wild, [x], 5) is None


def test_reflected_models_have_refits_that_their_figures_are_held_against():
    x = palrnn.lorenz63(1500, dt=0.02, seed=0)
    # long enough that some models move on by themselves: others have nothing to train a refit on
    how = {"latent_dim": 12, "gated": 8, "updates": 1500, "sequence_length": 50, "keep": "last"}
    first = palrnn.reconstruct(x, evaluate_every=None, **how)
    found = palrnn.bootstrap(x, base=first, models=4, method="reflected", workers=1)
    plain = palrnn.bootstrap(x, base=first, models=4, method="varied", workers=1)
    # the same models as of a varied ensemble, one refit of the same size beside each
    assert all(b is None or a.gated == b.gated for a, b in zip(found.models, found.refits, strict=True))
    assert [m.theta.tolist() for m in found.models] == [m.theta.tolist() for m in plain.models]
    assert len(found.refits) == len(found.models)
    pairs = [(a, b) for a, b in zip(found.models, found.refits, strict=True) if b is not None]
    assert len(pairs) >= 2
    assert all(found.refit_of(a) is b for a, b in pairs)
    shifts = [each.interval(lambda model: model.h[:3], 1e-9)[0] for each in (found, plain)]
    off = np.median([b.h[:3] - a.h[:3] for a, b in pairs], axis=0)
    # the middle is shifted by what refits miss by, but for the spread of models around their mean
    spread = np.std([model.h[:3] for model in found.models], axis=0)
    assert (np.abs(shifts[0] - shifts[1] + off) < 2 * spread).all()
    assert not np.array_equal(*shifts)
    assert first.bars(found, count=3, steps=200, discard=20, gap_rows=0).method == "reflected"
    with pytest.raises(RuntimeError, match="fewer than 2 models move on"):
        palrnn.bootstrap(x, base=first, models=3, method="reflected", updates=5, workers=1)


def test_an_ensemble_stands_in_for_a_posterior(base):
    found = palrnn.bootstrap(series(), base=base, models=3, method="blocks", updates=20, workers=1)
    bars = found.error_bars(steps=200, discard=20)
    assert len(bars.lyapunov) == 3
    # a stable linear map: the exponent is the logarithm of its largest eigenvalue
    largest = [np.log(np.abs(np.linalg.eigvals(linear_part(model))).max()) for model in found.models]
    np.testing.assert_allclose(sorted(bars.lyapunov), sorted(largest), atol=0.02)
    forecast = base.forecast(series()[:50], 10, paths=6, posterior=found)
    assert forecast.paths.shape == (6, 10, 2)
    drawn = found.sample(7, seed=1)
    assert len(drawn) == 7
    assert len({id(model) for model in drawn[:3]}) == 3
    assert "3 models by 'blocks'" in repr(found)


def test_what_is_not_told_is_what_is_recommended():
    x = palrnn.lorenz63(1500, dt=0.02, seed=0)
    # long enough that some models move on by themselves: others have nothing to train a refit on
    how = {"latent_dim": 12, "gated": 8, "updates": 1500, "sequence_length": 50, "keep": "last"}
    first, heard = palrnn.reconstruct(x, evaluate_every=None, **how), []
    found = palrnn.bootstrap(x, base=first, models=4, workers=1, announce=heard.append)
    assert found.method == "reflected"
    assert len(found.refits) == len(found.models)
    words = r"training 4 models and a refit of each, 1,500 updates each: about \d+ seconds? with 1 worker"
    assert len(heard) == 1
    assert re.fullmatch(words, heard[0])
    drive = np.random.default_rng(0).standard_normal((600, 1))
    driven = palrnn.reconstruct(x[:600], inputs=drive, latent_dim=4, gated=1, updates=10, sequence_length=50)
    found = palrnn.bootstrap(x[:600], inputs=drive, base=driven, models=2, workers=1)
    assert found.method == "blocks"


def test_an_interrupted_bootstrap_goes_on_and_workers_change_nothing(base, tmp_path):
    settings = {"base": base, "models": 3, "method": "blocks", "updates": 25}
    whole = palrnn.bootstrap(series(), **settings, workers=1)

    def stop(done, total, figures):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        palrnn.bootstrap(series(), **settings, workers=1, run=tmp_path / "boot", progress=stop)
    there = sorted((tmp_path / "boot" / "members" / "tasks" / "member").glob("*.safetensors"))
    assert 1 <= len(there) < 3
    before = {file.name: file.stat().st_mtime_ns for file in there}
    again = palrnn.bootstrap(series(), **settings, workers=2, run=tmp_path / "boot")
    np.testing.assert_array_equal(again.theta, whole.theta)
    assert all((there[0].parent / name).stat().st_mtime_ns == time for name, time in before.items())


def test_without_a_base_one_is_trained_first_and_kept(tmp_path):
    x = series(400)
    how = {"models": 2, "method": "blocks", "updates": 10, "workers": 1}
    found = palrnn.bootstrap(x, run=tmp_path / "boot", **how, **QUICK)
    kept = palrnn.Reconstruction.load(tmp_path / "boot" / "base")
    np.testing.assert_array_equal(kept.drift.theta, found.model.theta)


def test_blocks_are_stretches_of_the_data_and_as_many_rows():
    trials = [np.arange(100.0)[:, None], 1000 + np.arange(50.0)[:, None], 5000 + np.arange(10.0)[:, None]]
    drawn = resampled(trials, 20, 0, 3)
    assert [len(block) for block in drawn] == 8 * [20]
    assert all((np.diff(block[:, 0]) == 1).all() for block in drawn)
    # what is too short for a block is left out; longer trials give more
    starts = np.array([block[0, 0] for k in range(200) for block in resampled(trials, 20, 0, k)])
    share = (starts < 1000).mean()
    assert starts.max() < 5000
    assert abs(share - 81 / 112) < 4 * np.sqrt(0.2 / len(starts))
    many = [np.full((5, 1), float(k)) for k in range(12)]
    assert all(block.shape == (5, 1) for block in resampled(many, 0, 0, 1))
    assert len(resampled(many, 0, 0, 1)) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": 1}, "models must be"),
        ({"method": "luck"}, "method must be one of"),
        ({"block": 5}, "block must be"),
        ({"updates": 0}, "updates must be"),
        ({"base": 3}, "base must be a Reconstruction"),
        ({"latent_dim": 5}, "latent_dim is a setting of the first model"),
        ({"workers": 0}, "workers must be"),
        ({"workers": 1, "scheduler": "tcp://nowhere:1"}, "workers are of this machine"),
    ],
)
def test_errors_name_the_argument(base, change, message):
    with pytest.raises(ValueError, match=message):
        palrnn.bootstrap(
            series(), **({"base": base, "models": 2, "method": "blocks", "updates": 5, "workers": 1} | change)
        )


def test_a_base_of_other_columns_is_refused(base):
    with pytest.raises(ValueError, match="base must be a model of x"):
        palrnn.bootstrap(series()[:, :1], base=base, models=2)


def test_members_see_the_past_that_the_first_model_has():
    x = palrnn.lorenz63(1500, seed=0)[:, :1]
    small = {"latent_dim": 8, "gated": 4, "sequence_length": 50}
    base = palrnn.reconstruct(x, lags=2, delay=5, test_fraction=0.3, updates=20, **small)
    how = {"base": base, "models": 2, "method": "blocks", "updates": 20, "workers": 1}
    found = palrnn.bootstrap(x, **how)
    # as if the data set of the base had been given
    again = palrnn.bootstrap(palrnn.Dataset.prepare(x, lags=2, delay=5, test_fraction=0.3), **how)
    np.testing.assert_array_equal(found.theta, again.theta)
    with pytest.raises(ValueError, match="lags and delay must be those of base, 2 and 5, got 2 and 9"):
        palrnn.bootstrap(x, base=base, models=2, lags=2, delay=9)


def test_models_of_one_kind_have_noise_of_their_own_in_a_forecast(base):
    noisy = base.with_noise(process=0.2, observation=0.2)
    alike = Ensemble(noisy, (noisy.drift,) * 40, "blocks", 0)
    ahead = alike.forecast(series()[:30], 4, paths=40, particles=16)
    assert len(np.unique(ahead.paths[:, 0, 0])) == 40
    # forty models with a path each tell as much of the noise as forty paths of one
    spread = ahead.paths.std(axis=0).mean()
    assert spread == pytest.approx(
        noisy.forecast(series()[:30], 4, paths=4000).paths.std(axis=0).mean(), rel=0.3
    )


def test_varied_sizes_take_the_noise_of_each_unit():
    x = palrnn.lorenz63(1500, seed=0)
    first = palrnn.reconstruct(x, latent_dim=8, gated=4, updates=60, sequence_length=50)
    noisy = first.with_noise(process=np.linspace(0.1, 0.8, 8), observation=0.1)
    found = palrnn.bootstrap(x, base=noisy, models=4, method="varied", workers=1)
    assert {model.latent_dim for model in found.models} != {8}
    assert np.isfinite(found.forecast(x[:20], 3, paths=8, particles=8).paths).any()


def test_a_short_series_has_varied_models_by_default():
    first = palrnn.reconstruct(palrnn.lorenz63(400, seed=0), updates=20, sequence_length=50)
    assert isinstance(first.drift, palrnn.ShallowPLRNN)
    found = palrnn.bootstrap(
        palrnn.lorenz63(400, seed=0), base=first, models=5, method="varied", updates=20, workers=1
    )
    sizes = [model.gated for model in found.models]
    assert {model.latent_dim for model in found.models} == {3}
    assert len(set(sizes)) > 1
    assert all(50 / 1.6 - 1 <= size <= 50 * 1.6 + 1 for size in sizes)


def test_a_file_is_read_as_it_was_for_the_first_model(tmp_path):
    x = palrnn.lorenz63(600, seed=0)
    rows = "\n".join(",".join(map(str, row)) for row in x)
    (tmp_path / "x.csv").write_text("a,b,c\n" + rows + "\n")
    small = {"latent_dim": 6, "gated": 2, "sequence_length": 50, "updates": 20}
    base = palrnn.reconstruct(tmp_path / "x.csv", columns=["c", "a"], **small)
    how = {"base": base, "models": 2, "method": "blocks", "workers": 1}
    found = palrnn.bootstrap(tmp_path / "x.csv", **how)
    again = palrnn.bootstrap(x[:, [2, 0]], **how)
    np.testing.assert_array_equal(found.theta, again.theta)


def test_models_begun_when_there_was_radam_alone_are_found():
    data, base = Task(DATA, {}, {}), Task(BASE, {}, {})
    told = {
        name: member_task(0, TrainConfig(optimizer=name), {"method": "seeds", "seed": 0}, data, base)
        for name in ("radam", "soap")
    }
    assert "optimizer" not in told["radam"].settings["config"]
    assert TrainConfig.stored(told["radam"].settings["config"]).optimizer == "radam"
    assert told["soap"].settings["config"]["optimizer"] == "soap"
