"""A search as a whole: what it returns and writes, how it goes on after a stop, and what it refuses."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

import numpy as np
import pytest
from tiny_search import results, series, tiny_search

import palrnn
from palrnn.data import lorenz63
from palrnn.engine.progress import quiet
from palrnn.forcing import train
from palrnn.searches.pace import pace
from palrnn.searches.parts import parts
from palrnn.searches.space import Space


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "found"
    return folder, tiny_search(run=folder)


def test_the_winner_is_the_first_row_and_an_ordinary_run(whole):
    folder, found = whole
    assert [row["rank"] for row in found.table] == [1, 2, 3, 4]
    assert sorted(row["candidate"] for row in found.table) == [0, 1, 2, 3]
    # two of four went on, to three times the updates; the winner then had as many more as in its last rung
    assert [row["updates"] for row in found.table] == [72, 72, 24, 24]
    losses = [
        row["loss"] for row in found.table if row["rung"] == 2 and row["grade"] == found.table[0]["grade"]
    ]
    assert losses == sorted(losses)
    again = palrnn.Reconstruction.load(folder / "best")
    np.testing.assert_array_equal(again.drift.theta, found.best.drift.theta)
    assert again.record.training.forcing == found.best.forcing
    assert [update for update, _ in again.losses] == list(range(1, 121))
    assert again.verdict().grade == found.verdict.grade
    assert again.search.rows == json.loads((folder / "result.json").read_text())["table"]
    # the folder of the search stands for its winner
    assert palrnn.Reconstruction.load(folder).fingerprint() == again.fingerprint()


def test_it_says_why(whole):
    _, found = whole
    row = found.table[0]
    assert found.why.startswith(
        f"Candidate {row['candidate']} won. From the validation rows it is {row['grade']}: "
    )
    assert f"D_stsp is {row['dstsp']:.2f} (floor {row['dstsp_floor']:.2f})" in found.why
    assert f"The runner-up, candidate {found.table[1]['candidate']}, " in found.why
    assert "The winner had 48 updates more on all rows to train on" in found.why
    assert str(found.verdict) in str(found)
    assert len(str(found).splitlines()) == 6
    assert found.to_dict()["why"] == found.why
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_table_is_a_file_too(whole):
    folder, found = whole
    lines = (folder / "table.csv").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("rank,candidate,rung,updates,grade,alive,starts,dstsp,")
    settings = tomllib.loads((folder / "search.toml").read_text())
    assert (settings["updates"], settings["choices"]["latent_dim"]) == (288, [6])
    assert found.updates == 288


def test_the_held_out_part_chooses_nothing(whole):
    _, found = whole
    other = series()
    other[960:] = 3.0 * other[960:] - 7.0
    assert tiny_search(other).table == found.table


def test_the_same_call_again_changes_nothing(whole):
    folder, found = whole
    before = results(folder)
    assert tiny_search(run=folder).table == found.table
    assert results(folder) == before


@pytest.mark.parametrize("stop", [1, 4, 5])
def test_an_interrupted_search_goes_on_as_if_it_had_not_been(whole, tmp_path, stop):
    """Ctrl-C after some of the six trainings, then once more without any settings."""
    calls = []

    def interrupting(done: int, total: int, figures: Mapping[str, float]) -> None:
        calls.append(done)
        if len(set(calls)) > stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_search(run=tmp_path / "found", progress=interrupting)
    there = results(tmp_path / "found")
    assert "result.json" not in there
    palrnn.search(series(), run=tmp_path / "found", workers=1, progress=quiet)
    now = results(tmp_path / "found")
    # what was done is as it was, and all is as in one go
    assert there.items() <= now.items()
    assert now == results(whole[0])


def test_two_workers_find_the_same(whole, tmp_path):
    found = tiny_search(run=tmp_path / "found", workers=2)
    assert found.table == whole[1].table
    assert results(tmp_path / "found") == results(whole[0])


@pytest.mark.slow
def test_a_cluster_finds_the_same(whole, tmp_path, cluster):
    found = tiny_search(run=tmp_path / "found", workers=None, scheduler=cluster.address)
    assert found.table == whole[1].table
    assert results(tmp_path / "found") == results(whole[0])


def test_another_seed_tries_other_settings(whole):
    other = tiny_search(seed=1)
    assert {row["seed"] for row in other.table}.isdisjoint(row["seed"] for row in whole[1].table)


def test_minutes_become_updates_once(tmp_path, monkeypatch):
    monkeypatch.setattr("palrnn.searches.pace.pace", lambda candidate, data: (10.0, 0.1))
    found = tiny_search(run=tmp_path / "found", minutes=0.5, updates=None, candidates=2)
    # 30 seconds, of which six judgements of 0.5 s are none for updates, and two sevenths for larger models
    assert found.updates == round(27.0 * 10.0 / 1.4)
    monkeypatch.setattr("palrnn.searches.pace.pace", lambda candidate, data: (99.0, 0.1))
    again = palrnn.search(series(), run=tmp_path / "found", workers=1, minutes=0.5, progress=quiet)
    assert (again.updates, again.table) == (found.updates, found.table)


def test_one_column_is_seen_with_its_past(tmp_path):
    found = tiny_search(series()[:, :1], candidates=6, updates=100, run=tmp_path / "found")
    assert {row["lags"] for row in found.table} <= {1, 2, 3, 4, 5}
    assert len({(row["lags"], row["delay"]) for row in found.table}) > 2
    data = found.best.record.data
    assert (data.lags, data.delay) == (found.table[0]["lags"], found.table[0]["delay"])
    assert found.best.drift.observed_dim == data.lags == found.best.held.shape[1]
    # all candidates are compared in the same space, whatever their past
    assert len({row["dstsp_floor"] for row in found.table}) == 1


def test_of_a_short_column_no_past_is_so_long_that_the_winner_cannot_be_judged(monkeypatch):
    tried = []

    def candidate(self, number, drawn=Space.candidate):
        tried.append(drawn(self, number))
        return tried[-1]

    monkeypatch.setattr(Space, "candidate", candidate)
    # 60 rows are held out, of which a score card takes 40; the usual delay would take more
    x = lorenz63(300, dt=0.005, seed=3)[:, :1]
    tiny_search(x, candidates=30, updates=400)
    assert max(each.lags for each in tried) == 5
    assert max((each.lags - 1) * each.delay for each in tried) == 20


def test_a_past_that_leaves_too_little_to_judge_by_is_refused_before_any_training():
    with pytest.raises(ValueError, match=r"lags = 3 with delay = 1 must leave 40 of the 40 held-out rows"):
        tiny_search(lorenz63(400, seed=3)[:, :1], test_fraction=0.1, lags=3)


def test_the_past_of_a_dataset_is_what_it_was_prepared_with():
    found = tiny_search(palrnn.Dataset.prepare(series()[:, :1], dt=0.01, lags=1), dt=None, updates=60)
    assert {row["lags"] for row in found.table} == {1}


def test_the_winner_is_kept_though_it_cannot_be_judged(tmp_path, monkeypatch):
    def verdict(self):
        raise ValueError("reference is of no use")

    monkeypatch.setattr(palrnn.Reconstruction, "verdict", verdict)
    with pytest.raises(ValueError, match="of no use"):
        tiny_search(updates=60, run=tmp_path / "found")
    assert palrnn.Reconstruction.load(tmp_path / "found" / "best").drift.observed_dim == 3


def test_no_limit_for_gradients_is_a_choice():
    for given, there in ((None, {None}), ((None, 5.0), {None, 5.0})):
        found = tiny_search(gradient_clip=given, candidates=8, updates=100)
        assert {row["gradient_clip"] for row in found.table} == there


def test_a_timing_has_sequences_as_long_as_those_of_the_search(monkeypatch):
    lengths = []

    def timed(trials, config, **more):
        lengths.append(config.sequence_length)
        return train(trials, config, **more)

    monkeypatch.setattr("palrnn.searches.pace.train", timed)
    candidate = Space(columns=3, most_past=0, tau=5, choices={"sequence_length": [30]}).candidate(0)
    pace(candidate, parts([series()]))
    assert set(lengths) == {30}


def test_a_dataset_and_other_families_will_do():
    found = tiny_search(
        palrnn.Dataset.prepare(series(), dt=0.01, lags=2, delay=3),
        dt=None,
        latent_dim=None,
        gated=None,
        hidden=4,
        families="shallow",
        updates=40,
    )
    assert {row["family"] for row in found.table} == {"shallow"}
    assert found.best.drift.observed_dim == 6


def test_a_candidate_whose_training_diverges_is_the_last():
    found = tiny_search(learning_rate=(3e-3, 1e30), gradient_clip=1e30, updates=60, candidates=4, seed=2)
    grades = [row["verdict"] for row in found.table]
    assert "diverged" not in grades[0]
    assert grades[-1].startswith("not usable: training diverged at update")


def test_gaps_are_allowed():
    x = series()
    x[50:60, 1] = np.nan
    x[900, 0] = np.nan
    assert len(tiny_search(x, updates=20, candidates=2).table) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"updates": 5}, "updates must be at least 12 for 4 candidates, got 5"),
        ({"updates": 288, "minutes": 1}, "minutes and updates are two budgets"),
        ({"updates": None, "minutes": -1}, "minutes"),
        ({"candidates": 1}, "candidates"),
        ({"families": "linear"}, "families: family must be one of"),
        ({"families": 3}, "families must be names"),
        ({"lags": 0}, "lags"),
        ({"delay": "x"}, "delay"),
        ({"keep": "best"}, "keep is decided by the search itself"),
        ({"latentdim": 3}, "latentdim is not a known setting"),
        ({"latent_dim": 2}, "latent_dim must be at least 3, the number of columns, got 2"),
        ({"latent_dim": []}, "latent_dim must have a value"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"forcing": "x"}, "forcing"),
        ({"workers": 0}, "workers"),
        ({"workers": 1, "scheduler": "tcp://127.0.0.1:1"}, "workers are of this machine"),
        ({"run": ""}, "the folder of a search must have a name"),
        ({"learning_rate": (None, 1e-3)}, "learning_rate must have values to try, got None among them"),
        ({"x": np.column_stack([series(), np.arange(1200) < 100])}, "x must vary in every column"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given, words):
    with pytest.raises(ValueError, match=words):
        tiny_search(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": 9}, "was started with seed = 5, asked for 9"),
        ({"updates": 300}, "was started with updates = 288, asked for 300"),
        ({"latent_dim": 7}, "was started with choices = "),
        ({"x": lambda: series()[::-1]}, "was started on other data"),
        ({"test_fraction": 0.3}, "was started on other data"),
    ],
)
def test_a_search_is_not_continued_as_another(whole, given, words):
    x = given.pop("x", series)()
    with pytest.raises(ValueError, match=words):
        tiny_search(x, run=whole[0], **given)


def test_foreign_folders_stay_as_they_are(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds files that are not of a search"):
        tiny_search(run=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    np.save(tmp_path / "x.npy", series())
    with pytest.raises(ValueError, match="x must leave 200 rows"):
        tiny_search(series()[:200], run=tmp_path / "found")
    assert not (tmp_path / "found").exists()


def test_data_in_memory_must_be_given_again(whole):
    with pytest.raises(ValueError, match="x must be given, again: the search was of data in memory"):
        palrnn.search(run=whole[0], workers=1, progress=quiet)


def test_a_file_need_not_be_given_again(tmp_path):
    np.save(tmp_path / "x.npy", series())
    first = tiny_search(tmp_path / "x.npy", run=tmp_path / "found", updates=40)
    assert palrnn.search(run=tmp_path / "found", workers=1, progress=quiet).table == first.table
