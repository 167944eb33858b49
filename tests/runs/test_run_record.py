"""config.toml: one schema, read back as it was written, and what 0.1 wrote understood."""

from __future__ import annotations

import pytest

from palrnn.data import Dataset, lorenz63
from palrnn.forcing import TrainConfig
from palrnn.model import Forcing
from palrnn.runs import RunRecord, TuningSettings, TuningTask
from palrnn.tuning import SAEMConfig


@pytest.fixture
def record():
    dataset = Dataset.prepare(lorenz63(500, seed=1), dt=0.01, columns=("a", "b", "c"), lags=2, delay=3)
    config = TrainConfig(forcing=Forcing.annealed(0.9, 0.1, 4), latent_dim=8, gated=2)
    return RunRecord.of(dataset, config)


def test_what_is_written_is_read_back(record, tmp_path):
    task = TuningTask(checkpoint="/run", saem=SAEMConfig(configuration="calib", forcing=3))
    whole = record.changed(tuning=task, comparison=TuningSettings(betas=(5.0,), task=task))
    (tmp_path / "config.toml").write_text(whole.text())
    again = RunRecord.read(tmp_path / "config.toml")
    assert again == whole
    assert again.text() == whole.text()
    assert again.training.forcing == Forcing.annealed(0.9, 0.1, 4)
    assert again.columns(6) == ("a", "b", "c", "a, 3 steps ago", "b, 3 steps ago", "c, 3 steps ago")


def test_the_forcing_of_a_run_is_what_training_ended_with(record):
    assert record.forcing == Forcing.generalised(0.1, 4)
    tuned = RunRecord(tuning=TuningTask(saem=SAEMConfig(tau=7)))
    assert tuned.forcing == Forcing.identity(7)
    assert RunRecord().forcing is None


def test_a_setting_that_changes_is_named_wherever_it_is(record, tmp_path):
    file = tmp_path / "config.toml"
    record.refuse_changes(record.changed(training=record.training.changed(checkpoint_every=7)), file)
    with pytest.raises(ValueError, match=r"started with gated = 2, asked for 3; choose another folder"):
        record.refuse_changes(record.changed(training=record.training.changed(gated=3)), file)
    before = RunRecord(tuning=TuningTask(saem=SAEMConfig(ridge=0.5)))
    with pytest.raises(ValueError, match=r"ridge = 0.5, asked for 0.01"):
        before.refuse_changes(RunRecord(tuning=TuningTask()), file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[data]\nseries = 3\n", "data: series"),
        ("[data]\nlags = 2\n", "data: series is required"),
        ("[training]\nupdate = 3\n", "training: update is not a known setting"),
        ("[nonsense]\nx = 1\n", "nonsense is not a known setting"),
        ("[tuning.saem]\nridge = -1\n", "ridge"),
        ("data = 1\n", "data"),
        ("source = 2\nsaem = 'x'\n", "tuning"),
        ("[data\n", "not valid TOML"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_name(tmp_path, text, message):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        RunRecord.read(file)
    assert str(caught.value).startswith(str(file))


def test_the_series_may_be_told_beside_the_file(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[data]\ntest_fraction = 0.5\n")
    found = RunRecord.read(file, series="lorenz63").data
    assert (found.series, found.test_fraction) == ("lorenz63", 0.5)


def test_notes_in_a_checkpoint_tell_as_much_as_they_can():
    found = RunRecord.of_checkpoint({"data": {"system": "lorenz63", "dt": 0.01, "process_std": 0.1}})
    assert found.system(3).name == "lorenz63"
    assert found.process_std == 0.1
    # a zoo's model, whose notes name no series, and one of 0.1, whose data is a digest
    for notes in ({"data": {"dt": 0.01}}, {"data": "a digest", "config": {"tau": 3, "alpha": 0.5}}, {}):
        bare = RunRecord.of_checkpoint(notes)
        assert bare.data is None
    assert RunRecord.of_checkpoint({"config": {"tau": 3, "alpha": 0.5}}).forcing == Forcing.generalised(
        0.5, 3
    )
