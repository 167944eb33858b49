"""The zoo gives back the very bytes of every model, and says what is wrong with a bad file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, run

from palrnn.cli.main import main
from palrnn.model import CheckpointError, checkpoint_bytes, initial_alrnn, load_checkpoint
from palrnn.model.tensor_file import tensor_bytes
from palrnn.paper.zoo import load_from_zoo, write_zoo, zoo_checkpoint_bytes, zoo_models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models = {
        f"model-{seed}": checkpoint_bytes(initial_alrnn(5, 3, 2, seed=seed), dt=0.01) for seed in range(3)
    }
    regime = {"process_std": 0.1, "observation_std": 0.3, "tau": 16, "seed": 0}
    figures = {name: regime | {"dstsp": 0.5, "lyapunov": None} for name in models}
    write_zoo(tmp_path / "models.safetensors", models, figures)
    return tmp_path


def test_models_come_out_as_they_went_in(folder: Path) -> None:
    for seed in range(3):
        model = initial_alrnn(5, 3, 2, seed=seed)
        assert zoo_checkpoint_bytes(folder, f"model-{seed}")[f"model-{seed}"] == checkpoint_bytes(
            model, dt=0.01
        )
        np.testing.assert_array_equal(load_from_zoo(folder, f"model-{seed}").drift.W, model.W)
    assert list(zoo_models(folder / "models.safetensors")) == ["model-0", "model-1", "model-2"]


def test_the_same_models_give_the_same_file(folder: Path, tmp_path: Path) -> None:
    models = zoo_models(folder)
    again = {name: zoo_checkpoint_bytes(folder, name)[name] for name in models}
    write_zoo(tmp_path / "again.safetensors", again, {name: model.figures for name, model in models.items()})
    assert (tmp_path / "again.safetensors").read_bytes() == (folder / "models.safetensors").read_bytes()


def test_the_command_lists_and_takes_out(folder: Path, tmp_path: Path, capsys) -> None:
    for words in (["zoo", str(folder), "--json"], ["zoo", str(folder)]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 0
        out = capsys.readouterr().out
        if "--json" in words:
            assert json.loads(out)["model-1"]["tau"] == 16
        else:
            assert ["model-2", "0.1", "0.3", "16", "0", "0.5", "-"] in [
                line.split() for line in out.splitlines()
            ]
    with pytest.raises(SystemExit):
        main(["zoo", str(folder), "model-1", "-o", str(tmp_path / "one.safetensors")])
    assert load_checkpoint(tmp_path / "one.safetensors").drift.latent_dim == 5


def test_mistakes_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name must be one of the 3 models"):
        load_from_zoo(folder, "model-9")
    with pytest.raises(CheckpointError, match="no such file"):
        zoo_models(tmp_path / "nothing.safetensors")
    (tmp_path / "bad.safetensors").write_bytes((folder / "models.safetensors").read_bytes()[:100])
    with pytest.raises(CheckpointError, match="not a zoo of models, or damaged"):
        zoo_models(tmp_path / "bad.safetensors")
    (tmp_path / "model.safetensors").write_bytes(checkpoint_bytes(initial_alrnn(4, 3, 1)))
    with pytest.raises(CheckpointError, match="it holds something else"):
        zoo_models(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    "name", ["../escaped", "/tmp/escaped", "a/b", "", ".hidden", "a\x1b[31m", "a" * 101, "a\n"]
)
def test_a_model_whose_name_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    data = checkpoint_bytes(initial_alrnn(4, 3, 1))
    write_zoo(tmp_path / "models.safetensors", {name: data}, {})
    with pytest.raises(CheckpointError, match="cannot be the name of a model"):
        zoo_models(tmp_path)


def test_a_hostile_entry_is_refused_or_shown_as_text(tmp_path: Path, capsys) -> None:
    header = {"format": "palrnn-zoo", "version": "1"}
    for models in ('{"a": {"figures": 3, "header": {}}}', '{"a": []}', "[]", "[" * 100_000, "{", '{"a": 0}'):
        (tmp_path / "bad.safetensors").write_bytes(tensor_bytes({}, header | {"models": models}))
        with pytest.raises(CheckpointError, match="not a zoo of models, or damaged"):
            zoo_models(tmp_path / "bad.safetensors")
    figures = {"process_std": "\x1b]0;owned\x07", "tau": {"a": [1]}, "dstsp": "wide"}
    write_zoo(tmp_path / "odd.safetensors", {"a": checkpoint_bytes(initial_alrnn(4, 3, 1))}, {"a": figures})
    assert run("zoo", tmp_path / "odd.safetensors") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_taking_out_a_model_overwrites_nothing(folder: Path, tmp_path: Path, capsys) -> None:
    before = (folder / "models.safetensors").read_bytes()
    code, _, err = call(capsys, "zoo", folder, "model-1", "-o", folder / "models.safetensors")
    assert (code, "exists and is not from this command" in err) == (1, True)
    assert (folder / "models.safetensors").read_bytes() == before
