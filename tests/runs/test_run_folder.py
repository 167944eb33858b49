"""The folder of a run: who may write in it, what is never overwritten, and folders of 0.1."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from command_line import call, run
from tiny_reconstruction import TINY

import palrnn
from palrnn.data import lorenz63
from palrnn.engine.folders import MARKER
from palrnn.engine.locks import FolderInUseError
from palrnn.runs import Reconstruction, RunFolder

OLD = Path(__file__).parent / "folders_of_0_1"
QUICK = ("--latent-dim", 6, "--gated", 2, "--updates", 40, "--sequence-length", 20, "--tau", 5)


def contents(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.fixture
def series(tmp_path):
    np.save(tmp_path / "x.npy", lorenz63(1000, seed=2))
    return tmp_path / "x.npy"


@pytest.fixture
def trained(series, tmp_path):
    assert run("train", series, *QUICK, "-o", tmp_path / "run", "-q") == 0
    return tmp_path / "run"


def test_a_refused_training_leaves_everything_as_it_was(trained, tmp_path, capsys):
    before = contents(trained)
    np.save(tmp_path / "other.npy", lorenz63(1000, seed=3))
    for words in (
        (tmp_path / "other.npy",),
        (tmp_path / "x.npy", "--updates", 50),
        (tmp_path / "x.npy", "--test-fraction", 0.5),
    ):
        code, _, err = call(capsys, "train", *words, "-o", trained)
        assert code == 1
        assert "was started with" in err
        assert contents(trained) == before


def test_other_data_under_the_same_name_are_refused_before_anything_is_written(trained, series, capsys):
    before = contents(trained)
    np.save(series, lorenz63(1000, seed=3))
    code, _, err = call(capsys, "train", "-o", trained)
    assert code == 1
    assert "other data" in err
    assert contents(trained) == before


def test_a_refused_training_leaves_no_new_folder_half_made(series, tmp_path, capsys):
    for words in (
        (series, "--latent-dim", 30, "--gated", 31),
        (series, "--latent-dim", 2),
        (tmp_path / "nothing.csv",),
    ):
        assert run("train", *words, "-o", tmp_path / "new") == 1
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["history.csv", "notes.txt"])
def test_a_folder_with_other_files_is_not_written_to(series, tmp_path, monkeypatch, capsys, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("mine")
    monkeypatch.chdir(folder)
    code, _, err = call(capsys, "train", series, *QUICK, "-o", ".")
    assert code == 1
    assert name in err
    assert contents(folder) == {name: b"mine"}


def test_the_input_is_never_overwritten(series, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "data"
    folder.mkdir()
    series.rename(folder / "reference.npy")
    before = contents(folder)
    monkeypatch.chdir(folder)
    assert run("train", "reference.npy", *QUICK, "-o", ".") == 1
    assert contents(folder) == before
    # not even in a folder of ours
    (folder / MARKER).write_text(json.dumps({"kind": "run", "format": 1}))
    code, _, err = call(capsys, "train", "reference.npy", *QUICK, "-o", ".")
    assert code == 1
    assert "is what the command reads" in err
    assert contents(folder).keys() == {"reference.npy", MARKER}


def test_an_empty_name_is_refused(series, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    for words in (("train", series, *QUICK), ("tune", series), ("report", "run"), ("filter", "run")):
        code, _, err = call(capsys, *words, "-o", "")
        assert code == 1
        assert "must have a name, got ''" in err, words
    assert contents(tmp_path) == before


def test_tuning_does_not_replace_the_model_it_starts_from(trained, capsys):
    before = contents(trained)
    code, _, err = call(capsys, "tune", trained, "-o", trained, "--iterations", 1)
    assert code == 1
    assert "choose another folder" in err
    assert contents(trained) == before


def test_a_report_replaces_reports_only(trained, tmp_path, capsys):
    TINY.to_toml(tmp_path / "tiny.toml")
    before = contents(trained)
    words = ("report", trained, "--no-tune", "--config", tmp_path / "tiny.toml", "-q", "-o")
    for place in ("checkpoint.safetensors", "config.html"):
        # config.html would bring its settings along, as config.toml
        assert run(*words, trained / place) == 1
        assert "palrnn: error" in capsys.readouterr().err
        assert contents(trained) == before
    (tmp_path / "page.html").write_text("<p>mine</p>")
    assert run(*words, tmp_path / "page.html") == 1
    assert (tmp_path / "page.html").read_text() == "<p>mine</p>"
    assert run(*words, tmp_path / "new.html") == 0
    assert run(*words, tmp_path / "new.html") == 0


def _locked(folder: Path) -> subprocess.Popen[str]:
    code = (
        "import sys; from palrnn.runs import RunFolder\n"
        "with RunFolder(sys.argv[1]).writing('train'):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(folder)]
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    return other


def test_the_second_writer_of_a_folder_is_told_who_the_first_is(trained, series, tmp_path, capsys):
    TINY.to_toml(tmp_path / "tiny.toml")
    other = _locked(trained)
    try:
        for words in (
            ("train", series, *QUICK, "-o", trained),
            ("report", trained, "--config", tmp_path / "tiny.toml", "-o", tmp_path / "page.html"),
        ):
            code, _, err = call(capsys, *words, "-q")
            assert code == 1
            assert f"process {other.pid}" in err
        with pytest.raises(FolderInUseError, match=f"process {other.pid}"):
            Reconstruction.load(trained).save(trained)
        # reading needs no lock, and a result that cannot be kept is still a result
        before = contents(trained / "findings")
        found = Reconstruction.load(trained).invariants(TINY.invariants)
        assert found.hard.dstsp is not None
        assert contents(trained / "findings") == before
    finally:
        other.communicate()
    assert run("train", "-o", trained, "-q") == 0


def test_two_trainings_at_once_in_one_folder_do_not_mix(series, tmp_path):
    folder = tmp_path / "run"
    words = [sys.executable, "-m", "palrnn.cli.main", "train", str(series), "-o", str(folder), "-q"]
    sizes = [str(word) for word in QUICK] + ["--updates", "2000"]
    pair = [
        subprocess.Popen([*words, *sizes, "--seed", seed], stderr=subprocess.PIPE, text=True)
        for seed in ("1", "2")
    ]
    errors = [process.communicate()[1] for process in pair]
    codes = [process.returncode for process in pair]
    assert sorted(codes) == [0, 1], errors
    loser = errors[codes.index(1)]
    assert "is being written by process" in loser or "was started with seed" in loser
    kept = Reconstruction.load(folder)
    winner = codes.index(0) + 1
    assert kept.record.training.seed == winner
    assert palrnn.load_checkpoint(folder / "checkpoint.safetensors").training["config"]["seed"] == winner


@pytest.mark.parametrize("name", ["config.toml", "history.csv", "reference.npy", "checkpoint.safetensors"])
def test_nothing_is_written_through_a_link(series, tmp_path, name):
    victim, folder = tmp_path / "victim", tmp_path / "run"
    folder.mkdir()
    (folder / MARKER).write_text(json.dumps({"kind": "run", "format": 1}))
    victim.write_text("precious")
    (folder / name).symlink_to(victim)
    run("train", series, *QUICK, "-o", folder, "-q")
    assert victim.read_text() == "precious"


def test_findings_are_not_written_through_a_link(trained, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    shutil.rmtree(trained / "findings")
    (trained / "findings").symlink_to(victim)
    with pytest.raises(ValueError, match="is a link"):
        Reconstruction.load(trained).invariants(TINY.invariants)
    assert list(victim.iterdir()) == []
    (trained / "findings").unlink()
    (trained / "findings").mkdir()
    (tmp_path / "precious").write_text("precious")
    (trained / "findings" / "invariants.json").symlink_to(tmp_path / "precious")
    Reconstruction.load(trained).invariants(TINY.invariants)
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_folder_that_cannot_be_written_still_answers(trained):
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    trained.chmod(0o555)
    try:
        assert Reconstruction.load(trained).invariants(TINY.invariants).hard.dstsp is not None
    finally:
        trained.chmod(0o755)


def test_what_was_measured_in_training_is_kept_with_the_run(series, tmp_path):
    trained = palrnn.reconstruct(
        series, latent_dim=6, gated=2, updates=40, sequence_length=20, evaluate_every=16,
        evaluate_steps=500, evaluate_discard=100, run=tmp_path / "run",
    )  # fmt: skip
    assert [each.update for each in trained.measured] == [16, 32, 40]
    for folder in (tmp_path / "run", trained.save(tmp_path / "copy").folder.path):
        found = Reconstruction.load(folder)
        assert [update for update, _ in found.losses] == list(range(1, 41))
        for there, here in zip(found.measured, trained.measured, strict=True):
            # six digits in the file
            np.testing.assert_allclose(astuple(there), astuple(here), rtol=1e-5)


def test_measurements_between_the_means_of_the_losses_are_kept(tmp_path):
    folder = RunFolder(tmp_path / "run")
    losses, measured = [(10, 0.5), (20, 0.25)], (palrnn.forcing.Evaluation(15, np.inf, 0.5, np.nan, 0.0),)
    folder.write_course(losses, measured)
    assert folder.read_course()[0] == losses
    assert str(folder.read_course()[1]) == str(measured)


@pytest.mark.parametrize("name", ["trained", "saved", "tuned"])
def test_folders_of_0_1_load(name):
    found = Reconstruction.load(OLD / name)
    assert found.drift.latent_dim == 4
    assert found.dt == 0.01
    assert found.tau == 4
    if name == "trained":
        # trained by generalised forcing, which 0.1 forgot on the way to the report
        assert found.forcing == palrnn.Forcing.generalised(0.5, 4)
        assert found.system.name == "lorenz63"
        assert found.record.process_std == 0.1
        assert len(found.losses) == 40
    if name == "saved":
        assert (found.name, found.columns) == ("saved in 0.1", ("u", "v", "w"))
        assert found.probabilistic.process == palrnn.Noise.isotropic(0.2)
        assert found.record.run.training_steps == 720
    if name == "tuned":
        assert found.record.tuning.saem.configuration == "calib"
        assert isinstance(found.model, palrnn.PALRNN)


def old_run(folder):
    """A run of 0.1; the one in the sources may be read-only, as another user's are."""
    folder.mkdir()
    for file in (OLD / "trained").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())


def test_a_training_of_0_1_goes_on_in_its_folder(tmp_path):
    old_run(tmp_path / "run")
    before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    assert run("train", "-o", tmp_path / "run", "-q") == 0
    # it was complete: the model stays as it is
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before
    assert (tmp_path / "run" / MARKER).is_file()


def test_a_folder_of_0_1_with_other_files_in_it_is_not_taken_over(tmp_path, capsys):
    old_run(tmp_path / "run")
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    before = contents(tmp_path / "run")
    code, _, err = call(capsys, "train", "-o", tmp_path / "run")
    assert code == 1
    assert "thesis.tex" in err or "holds files" in err
    assert contents(tmp_path / "run") == before


def test_the_marker_says_what_the_folder_is(trained):
    assert json.loads((trained / MARKER).read_text())["kind"] == "run"
    assert not (trained / ".lock").exists()
    assert repr(RunFolder(trained)) == f"RunFolder({str(trained)!r})"


def test_python_and_shell_write_the_same_folder(series, tmp_path):
    x = np.load(series)
    assert run("train", series, *QUICK, "-o", tmp_path / "shell", "-q") == 0
    sizes = {"latent_dim": 6, "gated": 2, "updates": 40, "sequence_length": 20, "tau": 5}
    palrnn.reconstruct(series, **sizes, run=tmp_path / "python")
    shell, python = contents(tmp_path / "shell"), contents(tmp_path / "python")
    # the command also keeps the invariants that it prints; the history tells seconds
    same = {"config.toml", "reference.npy", MARKER}
    assert python.keys() == {name for name in shell if not name.startswith("findings")}
    assert {name: shell[name] for name in same} == {name: python[name] for name in same}
    models = [Reconstruction.load(tmp_path / name).drift.theta for name in ("shell", "python")]
    np.testing.assert_array_equal(*models)
    alone = palrnn.reconstruct(x, **sizes)
    np.testing.assert_array_equal(alone.drift.theta, models[0])
