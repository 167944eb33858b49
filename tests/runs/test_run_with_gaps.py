"""A series with gaps goes the whole way: training, judging, filtering, geometry, tuning, the report."""

from __future__ import annotations

import numpy as np
import pytest
from command_line import call
from tiny_reconstruction import SAEM, SIZES, TINY

import palrnn
from palrnn.engine.progress import quiet
from palrnn.runs import Reconstruction

pytestmark = [
    pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning"),
    pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning"),
]


@pytest.fixture(scope="module")
def series():
    """Lorenz-63 with a tenth of all values lost, the first row of the held-out part among them."""
    x = palrnn.lorenz63(3000, seed=3)
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    x[2400, 1] = np.nan
    return x


@pytest.fixture(scope="module")
def folder(series, tmp_path_factory):
    path = tmp_path_factory.mktemp("gaps")
    np.save(path / "series.npy", series)
    palrnn.reconstruct(
        path / "series.npy", dt=0.01, tau=8, updates=400, run=path / "run", progress=quiet, **SIZES
    )
    TINY.to_toml(path / "tiny.toml")
    return path


def test_the_loss_goes_down_as_it_does_without_gaps(series, folder):
    found = Reconstruction.load(folder / "run")
    x = found.standardizer.transform(series[:2400])
    start = palrnn.initial_alrnn(8, 3, 3)
    # measured: 0.45 of the loss at the start
    assert palrnn.itf_loss(found.drift, x[_first(x) :], 8) < 0.6 * palrnn.itf_loss(start, x[_first(x) :], 8)


def _first(x):
    return int(np.argmax(~np.isnan(x).any(axis=1)))


def test_every_question_has_an_answer(folder):
    found = Reconstruction.load(folder / "run")
    card = found.invariants(TINY.invariants)
    assert np.isfinite([card.hard.dstsp.value, card.hard.spectrum_distance, card.dstsp_floor.median]).all()
    assert np.isfinite(card.prediction.mse).all()
    assert found.generate(20).shape == (20, 3)
    forecast = found.tracking(200)
    assert np.isfinite(forecast.forced).all()
    assert np.isnan(forecast.truth).any()
    assert np.isfinite(found.evidence(8, windows=4, particles=8, progress=quiet).mean)
    assert found.diagnostics(TINY.filter).steps == 40
    assert np.isfinite(found.geometry(TINY.geometry).trace_itf)


def test_it_can_be_tuned_and_compared(folder):
    found = Reconstruction.load(folder / "run")
    tuned = found.tune("anchored", anchor_steps=2, rollout_steps=1200, **SAEM, progress=quiet)
    assert np.isfinite(tuned.saem.history["itf_loss"]).all()
    assert np.isfinite(tuned.saem.history["dstsp"][-1])


def test_the_report_is_written_by_the_command(folder, capsys):
    words = ("report", folder / "run", "-o", folder / "report.html", "--config", folder / "tiny.toml", "-q")
    code, _, err = call(capsys, *words)
    assert code == 0, err
    page = (folder / "report.html").read_text()
    assert "held-out values that are missing" in page


def test_the_command_trains_on_a_file_with_gaps(folder, capsys):
    words = ("train", folder / "series.npy", "-o", folder / "again", "--updates", 5, "--json", "-q")
    code, _, err = call(capsys, *words)
    assert code == 0, err


def test_scores_go_by_what_was_seen():
    x = palrnn.lorenz63(4000, seed=1)
    y = palrnn.lorenz63(4000, seed=2)
    lost = np.where(np.arange(4000)[:, None] % 5 == 0, np.nan, x)
    kept = ~np.isnan(lost).any(axis=1)
    assert palrnn.dstsp(y, lost).value == palrnn.dstsp(y, x[kept]).value
    # a series differs from itself by nothing, gaps or not
    assert palrnn.spectrum_distance(x, lost) == 0.0
    # measured: 0.126 without gaps and 0.088 with a fifth of the rows lost; both far from 0
    assert palrnn.spectrum_distance(y, lost) > 0.5 * palrnn.spectrum_distance(y, x)


def test_forecasts_are_compared_with_what_was_seen():
    model = palrnn.initial_alrnn(6, 3, 2, seed=1)
    x = palrnn.lorenz63(300, seed=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    lost = x.copy()
    lost[np.random.default_rng(1).random(x.shape) < 0.3] = np.nan
    found = palrnn.prediction_error(model, lost, 3, horizon=10)
    total, counts = np.zeros(3), np.zeros(3)
    for t in range(297):
        if not np.isnan(lost[t]).any():
            ahead = model.rollout(lost[t], 4).states[1:, :3] - lost[t + 1 : t + 4]
            total += np.nansum(ahead**2, axis=1)
            counts += (~np.isnan(ahead)).sum(axis=1)
    np.testing.assert_allclose(found.mse, total / counts, rtol=1e-12)


def test_a_finding_from_the_first_whole_row_is_none_of_a_row_that_was_asked_for(folder):
    found = Reconstruction.load(folder / "run")
    assert np.isnan(found.held[0]).any()
    assert np.isfinite(found.geometry(TINY.geometry).trace_itf)
    assert np.isfinite(found.diagnostics(TINY.filter).log_evidence)
    with pytest.raises(ValueError, match=r"x\[0\]"):
        found.geometry(TINY.geometry, start=0)
    with pytest.raises(ValueError, match=r"x\[0\]"):
        found.diagnostics(TINY.filter, start=0)
