"""Commands without settings classes of their own read their options from TOML, and write what they used."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from command_line import call

from palrnn import initial_alrnn, lorenz63, save_checkpoint
from palrnn.data import Standardizer


@pytest.fixture
def files(tmp_path):
    x = lorenz63(120, seed=1)
    np.save(tmp_path / "x.npy", x)
    model = tmp_path / "model.safetensors"
    save_checkpoint(model, initial_alrnn(4, 3, 2, seed=0), standardizer=Standardizer.fit(x), dt=0.01)
    return model, tmp_path / "x.npy", tmp_path


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("filter", ("--steps", 40, "--particles", 16, "--gate-std", 0.3, "--seed", 5)),
        ("geometry", ("--steps", 40, "--particles", 16, "--paths", 4, "--draws", 0, "--seed", 5)),
    ],
)
def test_running_from_the_written_settings_gives_the_same_bytes(files, capsys, command, options):
    model, series, folder = files
    code, _, err = call(capsys, command, model, series, *options, "-o", folder / "one", "-q")
    assert code == 0, err
    settings = folder / "one" / f"{command}.toml"
    code, _, err = call(capsys, command, "--config", settings, "-o", folder / "two", "-q")
    assert code == 0, err
    names = {file.name for file in (folder / "one").iterdir()}
    assert names == {file.name for file in (folder / "two").iterdir()}
    assert len(names) > 2
    for name in names:
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("command", "options"),
    [("filter", ("--particles", 16)), ("geometry", ("--particles", 16, "--paths", 4, "--draws", 0))],
)
def test_rows_that_nobody_asked_for_are_written_as_they_were_taken(files, capsys, command, options):
    model, series, folder = files
    x = np.load(series)
    x[:2, 1] = np.nan  # and fewer rows than the 200 of the geometry
    np.save(series, x)
    code, _, err = call(capsys, command, model, series, *options, "-o", folder / "one", "-q")
    assert code == 0, err
    settings = folder / "one" / f"{command}.toml"
    assert tomllib.loads(settings.read_text())["start"] == 2
    code, _, err = call(capsys, command, "--config", settings, "-o", folder / "two", "-q")
    assert code == 0, err
    for file in (folder / "one").iterdir():
        assert file.read_bytes() == (folder / "two" / file.name).read_bytes(), file.name


def test_the_command_line_wins_over_the_file(files, capsys):
    model, series, folder = files
    (folder / "settings.toml").write_text("particles = 16\nsteps = 30\n")
    words = ("filter", model, series, "--config", folder / "settings.toml", "-o", folder / "out", "--json")
    code, out, err = call(capsys, *words, "--particles", 8)
    assert code == 0, err
    assert (json.loads(out)["particles"], json.loads(out)["steps"]) == (8, 30)
    assert tomllib.loads((folder / "out" / "filter.toml").read_text())["particles"] == 8


@pytest.mark.parametrize("text", ["particels = 16", "json = true", "particles = ["])
def test_a_file_with_unknown_settings_or_no_toml_is_refused_in_one_line(files, capsys, text):
    model, series, folder = files
    (folder / "settings.toml").write_text(text)
    code, _, err = call(capsys, "filter", model, series, "--config", folder / "settings.toml")
    assert code == 1
    assert "settings.toml" in err
    assert err.count("\n") == 1
