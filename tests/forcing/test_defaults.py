"""The settings that nobody gives: which they are, and how they follow the data."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn import TrainConfig, reconstruct, train
from palrnn.engine.progress import quiet
from palrnn.model import Forcing
from palrnn.paper.presets import load_preset, plain_settings


def test_the_paper_is_a_preset_and_not_the_default():
    paper = TrainConfig.paper()
    assert (paper.latent_dim, paper.gated, paper.updates) == (30, 10, 100_000)
    assert (paper.learning_rate, paper.final_learning_rate, paper.gradient_clip) == (1e-3, 1e-5, None)
    assert paper.forcing == Forcing.identity(16)
    assert (paper.input_noise, paper.batch_size, paper.sequence_length) == (0.0, 16, 200)
    usual = TrainConfig()
    assert (usual.latent_dim, usual.gated, usual.learning_rate, usual.gradient_clip) == (50, 20, 3e-3, 5.0)
    assert TrainConfig.paper(tau=8, seed=3).forcing == Forcing.identity(8)


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_the_studies_of_the_paper_do_not_follow_the_defaults(scale):
    stated = plain_settings(load_preset(scale).training)
    config = TrainConfig.paper(**stated)
    assert config.gradient_clip is None
    assert config.learning_rate == stated.get("learning_rate", 1e-3)
    assert config.gated == stated.get("gated", 10)


def test_many_columns_get_more_units():
    assert TrainConfig().fitted(3).latent_dim == 50
    assert TrainConfig().fitted(64).latent_dim == 84
    assert TrainConfig(latent_dim=40).fitted(30).latent_dim == 40
    x = np.random.default_rng(0).standard_normal((300, 64))
    short = TrainConfig(updates=2, batch_size=2, sequence_length=10)
    assert train(x, short, progress=quiet).model.latent_dim == 84
    found = reconstruct(x, updates=2, batch_size=2, sequence_length=10, progress=quiet)
    assert found.model.latent_dim == 84
    with pytest.raises(ValueError, match="x has 64 columns, more than latent_dim = 60"):
        train(x, short.changed(latent_dim=60), progress=quiet)


def test_gates_follow_the_units_where_only_these_are_given():
    assert TrainConfig(latent_dim=8).gated == 4
    assert TrainConfig(latent_dim=200).gated == 20
    assert TrainConfig(latent_dim=8, gated=2).gated == 2
    with pytest.raises(ValueError, match="gated must be at most latent_dim"):
        TrainConfig(latent_dim=8, gated=9)
