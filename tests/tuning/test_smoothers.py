"""The E-step by each way to draw gate paths: exact expectations, the same bytes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.grid_smoother import grid_posterior
from oracles.small_models import drawn_series, gated_model

from palrnn.engine.progress import quiet
from palrnn.model import load_checkpoint, save_checkpoint
from palrnn.tuning import SAEMConfig, saem
from palrnn.tuning.estep import window_expectation

SMALL = {"length": 10, "iterations": 4, "windows": 5, "particles": 6, "paths": 2, "target": "exact"}
MODEL = gated_model(2, observed=1, latent=2)
DATA = drawn_series(MODEL, 80)


class Stop(Exception):
    pass


def expected_sums(model, x, config, repeats, *, carry):
    """Return (repeats, 2 M): the sums of z_t and z_t^2 over t < T of one E-step after the other.

    With ``carry`` a step goes on from the path of the one before; the first has none.
    """
    path, found = np.full((len(x) - 1, model.drift.gated), np.nan), []
    for r in range(repeats):
        window = window_expectation(model, x, config, path, 7, 1, r, 0)
        gram, dim = window.statistics.gram, model.drift.latent_dim
        moments = np.concatenate([gram[-1, :dim], np.diagonal(gram)[:dim]])
        found.append(moments / gram[-1, -1] * (len(x) - 1))
        path = window.path if carry else path
    return np.array(found)


@pytest.fixture(scope="module")
def exact():
    """The sums of z_t and z_t^2 over t < T that a grid expects given the first window."""
    found = grid_posterior(MODEL, DATA[:11])
    mean, variance = found.mean[:-1], found.variance[:-1]
    return np.concatenate([mean.sum(axis=0), (variance + mean**2).sum(axis=0)])


@pytest.mark.parametrize(
    ("smoother", "particles", "stretch"), [("ancestors", 200, 1), ("gibbs", 50, 1), ("conditional", 4, 20)]
)
def test_sums_of_the_e_step_are_those_of_the_grid(exact, smoother, particles, stretch):
    config = SAEMConfig(**SMALL | {"smoother": smoother, "particles": particles})
    carry = smoother == "conditional"
    found = expected_sums(MODEL, DATA[:11], config, 600 if carry else 100, carry=carry)
    # a chain counts as independent from stretch to stretch; the bias of a filter pass is below its error
    found = found.reshape(-1, stretch, found.shape[1]).mean(axis=1)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    # 4 numbers, 4 standard errors
    np.testing.assert_allclose((found.mean(axis=0) - exact) / error, 0.0, atol=4.0)


@pytest.mark.parametrize("smoother", ["gibbs", "conditional"])
def test_an_interrupted_run_goes_on_to_the_same_bytes_in_any_number_of_threads(smoother, tmp_path):
    config = SAEMConfig(smoother=smoother, robbins_monro=True, **SMALL)

    def stop(done, total, figures):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        saem(MODEL, DATA, config, run=tmp_path / "cut", progress=stop, threads=1)
    for name, threads in (("cut", 3), ("whole", 1)):
        saem(MODEL, DATA, config, run=tmp_path / name, progress=quiet, threads=threads)
    cut, whole = (tmp_path / name / "checkpoint.safetensors" for name in ("cut", "whole"))
    assert cut.read_bytes() == whole.read_bytes()
    assert ("paths" in load_checkpoint(whole).arrays) == (smoother == "conditional")


def test_a_conditional_filter_goes_on_from_the_path_of_its_last_visit(tmp_path):
    config = SAEMConfig(smoother="conditional", **SMALL)
    saem(MODEL, DATA, config, run=tmp_path, progress=quiet)
    paths = load_checkpoint(tmp_path / "checkpoint.safetensors").arrays["paths"]
    assert paths.shape == (7, 10, 2)
    # a window is either drawn as a whole or not at all
    unseen = np.isnan(paths).any(axis=(1, 2))
    assert np.isnan(paths[unseen]).all()
    assert not unseen.all()
    window = DATA[:11]
    start = np.full((10, 2), 0.5)
    settings = config.changed(particles=2)
    moved = [window_expectation(MODEL, window, settings, start, seed, 1, 0, 0).path for seed in range(20)]
    # with two particles some of a path often stays
    assert any((path == start).any() for path in moved)
    assert not all((path == start).all() for path in moved)


@pytest.mark.parametrize(
    ("paths", "words"),
    [(np.zeros((3, 10, 2)), "paths"), (np.full((7, 10, 2), 1e200), "paths must be within"), (None, "paths")],
)
def test_paths_that_do_not_fit_are_refused(paths, words, tmp_path):
    config = SAEMConfig(smoother="conditional", **SMALL)

    def stop(done, total, figures):
        raise Stop

    with pytest.raises(Stop):
        saem(MODEL, DATA, config, run=tmp_path, progress=stop)
    file = tmp_path / "checkpoint.safetensors"
    there = load_checkpoint(file)
    arrays = {name: value for name, value in there.arrays.items() if name != "paths"}
    save_checkpoint(
        file,
        there.model,
        training=there.training,
        arrays=arrays | ({} if paths is None else {"paths": paths}),
    )
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*{words}"):
        saem(MODEL, DATA, config, run=tmp_path, progress=quiet)


@pytest.mark.parametrize("smoother", ["gibbs", "conditional"])
def test_the_paper_s_target_has_ancestors_only(smoother):
    with pytest.raises(ValueError, match="target"):
        SAEMConfig(smoother=smoother)
    assert SAEMConfig().smoother == "ancestors"
