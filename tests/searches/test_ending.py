"""The end of a search: the winner and its rival learn from all rows, and the better one is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_search import series, tiny_search

import palrnn
from palrnn import Forcing
from palrnn.data import lorenz63
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainingDivergedError, train
from palrnn.model import initial_alrnn
from palrnn.searches.ending import clearly_better
from palrnn.searches.judge import Judgement, judge_model
from palrnn.searches.parts import parts


@pytest.fixture(scope="module")
def found():
    return tiny_search()


def test_in_the_end_the_winner_learns_from_all_rows(monkeypatch, found):
    learned = []

    def listening(trials, config, **how):
        learned.append(sum(map(len, trials)))
        return train(trials, config, **how)

    monkeypatch.setattr("palrnn.searches.work.train", listening)
    again = tiny_search()
    np.testing.assert_array_equal(again.best.drift.theta, found.best.drift.theta)
    rows = len(series()) - len(found.best.held)
    # four candidates in the first rung, two in the second, the winner and its rival
    assert learned == [round(0.8 * rows)] * 6 + [rows] * 2


def test_a_winner_that_would_not_live_stays_as_it_was(monkeypatch, found):

    def dying(trials, config, **how):
        if sum(map(len, trials)) == len(series()) - len(found.best.held):
            raise TrainingDivergedError(3, how["model"] or initial_alrnn(6, 3, 2), config, None)
        return train(trials, config, **how)

    monkeypatch.setattr("palrnn.searches.work.train", dying)
    again = tiny_search()
    assert again.table == found.table
    assert [update for update, _ in again.best.losses] == list(range(1, 73))
    assert "The winner is as it was: after 48 updates more on all rows" in again.why
    assert "training diverged at update" in again.why


def test_the_usual_settings_are_kept_where_all_rows_speak_for_them(monkeypatch, found, tmp_path):
    """The judge is told what to say of the two models at the end; all else is a real search."""
    asked, rows = [], len(series()) - len(found.best.held)

    def judge(model, data, **how):
        if len(data.validation) < rows:
            return judge_model(model, data, **how)
        asked.append(model)
        return replace(judge_model(model, data, **how), dstsp=1.0 if len(asked) == 2 else 9.0)

    monkeypatch.setattr("palrnn.searches.work.judge_model", judge)
    other = tiny_search(run=tmp_path / "found")
    winner, rival = asked
    np.testing.assert_array_equal(winner.theta, found.best.drift.theta)
    np.testing.assert_array_equal(rival.theta, other.best.drift.theta)
    # of a size that is given, as `reconstruct` would have it: no shallow one, though rows are few
    assert (type(rival).__name__, rival.latent_dim, rival.gated) == ("ALRNN", 6, 2)
    assert other.best.forcing == Forcing.identity(palrnn.Dataset.prepare(series(), dt=0.01).suggested_tau)
    assert [(row["candidate"], row["rung"], row["updates"]) for row in other.table[:1]] == [(4, 3, 48)]
    assert [row | {"rank": 0} for row in other.table[1:]] == [row | {"rank": 0} for row in found.table]
    assert [update for update, _ in other.best.losses] == list(range(1, 49))
    assert "trained afresh for 48 updates on all rows, are kept instead: by all rows D_stsp" in other.why
    again = palrnn.Reconstruction.load(tmp_path / "found")
    np.testing.assert_array_equal(again.drift.theta, rival.theta)


def test_chance_does_not_decide_against_the_winner():
    def judged(ended: int, dstsp: float) -> Judgement:
        return Judgement("good", (), 10 - ended, ended, 10, 1000, dstsp, 0.2, 0.1, 0.1, 0.1, False)

    winner = judged(0, 1.0)
    assert not clearly_better(judged(0, 0.9), winner)
    assert clearly_better(judged(0, 0.5), winner)
    # a run of ten that ends counts for 0.6 nats
    assert not clearly_better(judged(1, 0.2), winner)
    assert clearly_better(winner, judged(1, 0.9))


@pytest.mark.parametrize("rows", [1200, 6000])
@pytest.mark.parametrize(
    ("searched", "reconstructed"),
    [
        ({}, {}),
        ({"lags": 2, "delay": 3}, {"lags": 2, "delay": 3}),
        ({"families": "alrnn"}, {"family": "alrnn"}),
        ({"families": ("shallow", "alrnn")}, {}),
        ({"families": "clipped-shallow"}, {"family": "clipped-shallow"}),
        ({"latent_dim": 30}, {"latent_dim": 30}),
        ({"alpha": (0.3, 0.5), "batch_size": 4}, {"alpha": 0.3, "batch_size": 4}),
    ],
)
def test_the_rival_has_the_settings_that_reconstruct_would_take(monkeypatch, rows, searched, reconstructed):
    rivals = []

    def best(self, winner, usual, report):
        rivals.append(usual)
        raise KeyboardInterrupt

    monkeypatch.setattr("palrnn.searches.ending.Ending.best", best)
    monkeypatch.setattr("palrnn.searches.halving._Halving.order", lambda self, *_: [None])
    x = lorenz63(rows, seed=3)
    with pytest.raises(KeyboardInterrupt):
        palrnn.search(x, dt=0.01, updates=100, workers=1, progress=quiet, **searched)
    taken = []

    def train(trials, config, **how):
        taken.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr("palrnn.runs.training.train", train)
    with pytest.raises(KeyboardInterrupt):
        palrnn.reconstruct(x, dt=0.01, updates=100, progress=quiet, **reconstructed)
    own = {"seed": 0, "updates": 1}
    assert rivals[0].config(1).changed(**own) == taken[0].changed(**own)
    assert rivals[0].lags == reconstructed.get("lags", 1)


def test_a_sensor_that_starts_late_does_not_keep_the_rival_from_being_judged():
    x = lorenz63(1500, seed=3)
    x[:800, 1] = np.nan
    found = tiny_search(x, updates=60)
    assert "are not clearly better: by all rows D_stsp" in found.why or "are kept instead" in found.why


def test_usual_settings_that_diverge_are_no_rival(monkeypatch, found):

    def dying(trials, config, **how):
        if how["model"] is None and sum(map(len, trials)) == len(series()) - len(found.best.held):
            raise TrainingDivergedError(3, initial_alrnn(6, 3, 2), config, None)
        return train(trials, config, **how)

    monkeypatch.setattr("palrnn.searches.work.train", dying)
    again = tiny_search()
    np.testing.assert_array_equal(again.best.drift.theta, found.best.drift.theta)
    assert again.why.endswith("on all rows, diverged.")


def test_all_rows_of_the_longest_trial_judge_with_their_past_and_inputs():
    first, second = lorenz63(700, seed=1), lorenz63(900, seed=2)
    drives = [np.arange(700.0)[:, None], np.arange(900.0)[:, None]]
    part = parts([first, second], lags=2, delay=3, inputs=drives)
    whole = part.of_all_rows()
    np.testing.assert_array_equal(whole.reference, second[3:])
    np.testing.assert_allclose(part.standardizer.inverse(whole.validation)[:, :3], second[3:], atol=1e-9)
    np.testing.assert_array_equal(whole.validation_inputs, drives[1][3:])
    assert whole.floor_rows == len(part.reference)


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"result": {"grade": 3}}', b"\x00\xff[", b"[1, 2]"])
def test_a_damaged_judgement_is_made_again(tmp_path, damage):
    first = tiny_search(updates=60, run=tmp_path / "found")
    files = sorted((tmp_path / "found" / "candidates" / "tasks" / "judgement").glob("*.json"))
    whole = [file.read_bytes() for file in files]
    assert len(files) == 2
    files[0].write_bytes(damage)
    again = tiny_search(updates=60, run=tmp_path / "found")
    assert (again.why, again.table) == (first.why, first.table)
    assert [file.read_bytes() for file in files] == whole


def test_free_runs_are_scored_by_all_rows_where_halves_can_be_compared():
    x = np.random.default_rng(0).standard_normal((1000, 2))
    found = parts([x])
    scored = found.scored_by_all_rows()
    np.testing.assert_array_equal(scored.reference, x)
    assert scored.validation is found.validation
    late = x.copy()
    late[:600, 1] = np.nan
    kept = parts([late])
    assert kept.scored_by_all_rows() is kept
    driven = parts([x], inputs=[x[:, :1]])
    assert driven.scored_by_all_rows() is driven


def _off_at_the_end():
    x = np.random.default_rng(0).standard_normal((70_000, 2))
    x[-30_000:, 1] = np.nan
    return x


def _never_together_at_first():
    x = np.random.default_rng(0).standard_normal((4000, 2))
    x[:1000, 0], x[1000:2000, 1] = np.nan, np.nan
    return x


@pytest.mark.parametrize("x", [_off_at_the_end(), _never_together_at_first()], ids=["off", "apart"])
def test_a_series_whose_gaps_leave_no_floor_is_judged_by_the_validation_rows(x):
    data = parts([x])
    assert data.scored_by_all_rows() is data
    found = judge_model(initial_alrnn(4, 2, 2), data, long_steps=1000)
    assert np.isfinite(found.dstsp_floor)


def test_gaps_of_a_series_are_not_put_into_its_floor_twice():
    x = np.random.default_rng(0).standard_normal((4002, 2))
    x[1::2] = np.nan
    data = parts([x])
    assert data.scored_by_all_rows() is data  # of halves of 2,001 rows no row is there in both
    assert np.isfinite(judge_model(initial_alrnn(4, 2, 2), data, long_steps=1000).dstsp_floor)
    x = x[:4000]
    data = parts([x]).scored_by_all_rows()
    assert len(data.reference) == len(x)
    assert data.floor_source is data.longest
    assert np.isfinite(judge_model(initial_alrnn(4, 2, 2), data, long_steps=1000).dstsp_floor)
