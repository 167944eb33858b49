"""The settings that nobody gives: which they are, and how they follow the data."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn import TrainConfig, reconstruct, train
from palrnn.data import Dataset
from palrnn.engine.progress import quiet
from palrnn.model import Forcing
from palrnn.paper.presets import load_preset, plain_settings
from palrnn.runs import RunRecord
from palrnn.runs.training import usual_config


def test_the_paper_is_a_preset_and_not_the_default():
    paper = TrainConfig.paper()
    assert (paper.latent_dim, paper.gated, paper.updates) == (30, 10, 100_000)
    assert (paper.learning_rate, paper.final_learning_rate, paper.gradient_clip) == (1e-3, 1e-5, None)
    assert paper.forcing == Forcing.identity(16)
    assert (paper.input_noise, paper.batch_size, paper.sequence_length) == (0.0, 16, 200)
    usual = TrainConfig()
    assert (usual.latent_dim, usual.gated, usual.learning_rate, usual.gradient_clip) == (60, 40, 3e-3, 5.0)
    assert usual.input_noise == 0.05
    assert TrainConfig.paper(tau=8, seed=3).forcing == Forcing.identity(8)


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_the_studies_of_the_paper_do_not_follow_the_defaults(scale):
    stated = plain_settings(load_preset(scale).training)
    config = TrainConfig.paper(**stated)
    assert config.gradient_clip is None
    assert config.learning_rate == stated.get("learning_rate", 1e-3)
    assert config.gated == stated.get("gated", 10)


def test_no_limit_survives_a_file(tmp_path):
    for config in (TrainConfig.paper(), TrainConfig(), TrainConfig(gradient_clip=0.5)):
        config.to_toml(tmp_path / "config.toml")
        assert TrainConfig.from_toml(tmp_path / "config.toml") == config
        assert TrainConfig(**config.model_dump(mode="json")) == config
    record = RunRecord(training=TrainConfig.paper())
    (tmp_path / "run.toml").write_text(record.text())
    assert RunRecord.read(tmp_path / "run.toml").training.gradient_clip is None
    # as a run wrote it when no limit was the default
    old = record.text().replace('gradient_clip = "none"\n', "")
    assert "gradient_clip" not in old
    (tmp_path / "run.toml").write_text(old)
    assert RunRecord.read(tmp_path / "run.toml").training.gradient_clip is None
    (tmp_path / "run.toml").write_text("[training]\nupdates = 5\n")
    assert RunRecord.read(tmp_path / "run.toml").training.gradient_clip == 5.0


def test_a_long_training_keeps_the_best_measured_on_what_it_learned_from(monkeypatch):
    """The choice is that of `reconstruct`; nothing is trained here."""
    x = np.cumsum(np.random.default_rng(0).standard_normal((2000, 2)), axis=0)
    seen = {}

    def refuse(trials, config, **how):
        seen.update(how, config=config, trials=trials)
        raise InterruptedError

    monkeypatch.setattr("palrnn.runs.training.train", refuse)
    for changes, expected in (
        ({}, ("best", 3000)),
        ({"updates": 10_000}, ("best", 1000)),
        ({"updates": 9000}, ("last", None)),
        ({"keep": "last"}, ("last", None)),
        ({"evaluate_every": 50}, ("last", 50)),
        ({"config": TrainConfig.paper()}, ("last", None)),
    ):
        with pytest.raises(InterruptedError):
            reconstruct(x, progress=quiet, **changes)
        assert (seen["config"].keep, seen["config"].evaluate_every) == expected
    np.testing.assert_array_equal(seen["heldout"], seen["trials"][0][-9000:])


def test_many_columns_get_more_units():
    assert TrainConfig().fitted(3).latent_dim == 60
    assert TrainConfig().fitted(64).latent_dim == 104
    assert TrainConfig(latent_dim=40).fitted(30).latent_dim == 40
    x = np.random.default_rng(0).standard_normal((300, 64))
    short = TrainConfig(updates=2, batch_size=2, sequence_length=10)
    assert train(x, short, progress=quiet).model.latent_dim == 104
    found = reconstruct(x, updates=2, batch_size=2, sequence_length=10, progress=quiet)
    assert found.model.latent_dim == 104
    with pytest.raises(ValueError, match="more than latent_dim = 60: give latent_dim = 64 or more"):
        train(x, short.changed(latent_dim=60), progress=quiet)


def test_a_short_series_gets_settings_that_cannot_learn_it_by_heart():
    rng = np.random.default_rng(0)
    few = {"updates": 2, "batch_size": 2, "sequence_length": 10, "progress": quiet}

    def chosen(rows, columns, **given):
        return reconstruct(rng.standard_normal((rows, columns)), **few, **given).record.training

    short = chosen(1800, 3)
    assert (short.family, short.latent_dim, short.hidden) == ("shallow", 3, 50)
    assert (short.forcing, short.optimizer) == (Forcing.generalised(0.1), "radam")
    assert chosen(1900, 3).family == "alrnn"  # 1,520 rows to train on
    assert chosen(1900, 3).optimizer == "soap"
    assert chosen(300, 3, optimizer="soap").optimizer == "soap"
    assert chosen(300, 7).family == "alrnn"
    assert (chosen(300, 1).family, chosen(300, 1).optimizer) == ("alrnn", "radam")
    assert chosen(300, 2, lags=2).family == "alrnn"
    # past values stand for what is not seen
    assert chosen(300, 2, lags=2).forcing == Forcing.generalised(0.1)
    assert chosen(300, 2, lags=2, tau=5).forcing == Forcing.identity(5)
    # what somebody gives holds
    assert chosen(300, 3, tau=5).forcing == Forcing.identity(5)
    assert chosen(300, 3, latent_dim=6).family == "alrnn"
    assert chosen(300, 3, config=TrainConfig.paper(updates=2)).family == "alrnn"
    assert chosen(300, 3, config=TrainConfig(optimizer="soap")).optimizer == "soap"


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0.02), (0.035, 0.035), (0.3, 0.05)])
def test_input_noise_is_that_of_the_data_within_bounds(noise, expected):
    time = np.arange(4000) / 20
    smooth = np.column_stack([np.sin(time), np.sin(1.3 * time), np.cos(time)]) * 2**0.5
    x = smooth + noise * np.random.default_rng(0).standard_normal(smooth.shape)
    few = {"updates": 2, "batch_size": 2, "sequence_length": 10, "progress": quiet}
    # the estimate from 9,600 numbers has a relative error of 1/sqrt(2 * 9,600)
    assert reconstruct(x, **few).record.training.input_noise == pytest.approx(expected, rel=0.05)
    assert reconstruct(x, input_noise=0.0, **few).record.training.input_noise == 0.0
    assert reconstruct(x[:1000], **few).record.training.input_noise == 0.05  # short


def test_gates_follow_the_units_where_only_these_are_given():
    assert TrainConfig(latent_dim=8).gated == 6
    assert TrainConfig(latent_dim=200).gated == 40
    assert TrainConfig(latent_dim=8, gated=2).gated == 2
    with pytest.raises(ValueError, match="gated must be at most latent_dim"):
        TrainConfig(latent_dim=8, gated=9)


def test_a_run_begun_with_another_optimiser_goes_on_where_the_settings_leave_it_open(tmp_path):
    x = np.random.default_rng(0).standard_normal((2500, 2))
    config = TrainConfig(latent_dim=4, gated=2, updates=4, sequence_length=20)
    begun = reconstruct(x, run=tmp_path / "run", config=config.changed(optimizer="radam"), progress=quiet)
    again = reconstruct(x, run=tmp_path / "run", config=config, progress=quiet)
    np.testing.assert_array_equal(again.drift.theta, begun.drift.theta)
    with pytest.raises(ValueError, match="optimizer = 'radam', asked for 'soap'"):
        reconstruct(x, run=tmp_path / "run", config=config, optimizer="soap", progress=quiet)


def test_a_long_training_ends_with_polishing_unless_told_otherwise():
    x = np.cumsum(np.random.default_rng(0).standard_normal((2000, 2)), axis=0)
    dataset = Dataset.prepare(x)
    assert usual_config(dataset, {}).polish == 16
    assert usual_config(dataset, {"polish": 0}).polish == 0
    assert usual_config(dataset, {"updates": 200}).polish == 0
    assert usual_config(dataset, {}, TrainConfig.paper()).polish == 0
    assert TrainConfig().polish == 0
    driven = Dataset.prepare(x, inputs=x[:, :1])
    assert usual_config(driven, {}).polish == 0  # what inputs drive has no fixed points


def test_a_run_begun_before_there_was_polishing_goes_on_without(tmp_path, monkeypatch):
    x = np.cumsum(np.random.default_rng(0).standard_normal((2000, 2)), axis=0)
    seen = []

    def refuse(trials, config, **how):
        seen.append(config.polish)
        raise InterruptedError

    monkeypatch.setattr("palrnn.runs.training.check_training", lambda *_, **__: None)
    monkeypatch.setattr("palrnn.runs.training.train", refuse)
    for given in ({}, {"polish": 3}):
        with pytest.raises(InterruptedError):
            reconstruct(x, run=tmp_path / f"run{len(given)}", progress=quiet, **given)
        record = tmp_path / f"run{len(given)}" / "config.toml"
        text = record.read_text()
        assert f"polish = {seen[-1]}\n" in text
        record.write_text("".join(line for line in text.splitlines(True) if not line.startswith("polish")))
        with pytest.raises(InterruptedError):
            reconstruct(x, run=tmp_path / f"run{len(given)}", progress=quiet)
    assert seen == [16, 0, 3, 0]
