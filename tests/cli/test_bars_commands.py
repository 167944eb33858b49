"""`palrnn bootstrap` and `palrnn evaluate --bars`: intervals, where they are kept, and how they refuse."""

import json

import numpy as np
import pytest
from command_line import call

from palrnn.data import lorenz63
from palrnn.runs import Reconstruction

SIZES = ("--latent-dim", "6", "--gated", "2", "--tau", "8", "--updates", "300", "--sequence-length", "40")
QUICK = ("--steps", "400", "--discard", "50", "--pairs", "2", "--long-steps", "1000")


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "series.npy"
    t = np.arange(1500) * 0.1
    noise = 0.05 * np.random.default_rng(0).standard_normal((1500, 2))
    np.save(file, np.column_stack([np.sin(t), np.cos(t)]) + noise)
    return file


@pytest.fixture(scope="module")
def boot(series, tmp_path_factory):
    folder = tmp_path_factory.mktemp("boot") / "boot"
    return folder, (
        "bootstrap",
        series,
        "--models",
        "3",
        "--method",
        "blocks",
        *SIZES,
        "--workers",
        "1",
        "-o",
        folder,
    )


def test_a_bootstrap_keeps_its_models_and_goes_on(boot, capsys):
    folder, words = boot
    code, out, _ = call(capsys, *words, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["models"], found["diverged"]) == (3, 0)
    members = sorted((folder / "models" / "members" / "tasks" / "member").glob("*.safetensors"))
    assert len(members) == 3
    before = [file.stat().st_mtime_ns for file in members]
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert [file.stat().st_mtime_ns for file in members] == before
    assert "exponent 1" in out
    kept = json.loads((folder / "base" / "findings" / "bars.json").read_text())["found"]
    assert kept["figures"]["exponent 1"]["value"] == found["bars"]["figures"]["exponent 1"]["value"]
    assert kept["method"] == "blocks"
    assert len(kept["figures"]["D_stsp"]["draws"]) == 3
    assert {"Kaplan-Yorke dimension", "D_H", "curvature gap"} < set(kept["figures"])


@pytest.mark.parametrize("method", ["sandwich", "observed", "blocks"])
def test_evaluate_has_bars(boot, method, capsys):
    folder, words = boot
    if not folder.exists():
        call(capsys, *words)
    run = folder / "base"
    asked = ("evaluate", run, *QUICK, "--bars", method, "--draws", "3", "--workers", "1")
    code, out, err = call(capsys, *asked, "--json")
    assert code == 0, err
    bars = json.loads(out)["bars"]
    assert (bars["method"], bars["models"]) == (method, 3)
    figure = bars["figures"]["exponent 1"]
    assert figure["low"] <= figure["high"]
    code, out, _ = call(capsys, *asked)
    assert f"90 % intervals over 3 models by {method}" in out
    # kept with the run: asked again, the same object comes from its file
    again = Reconstruction.load(run)
    kept = json.loads((run / "findings" / "bars.json").read_text())
    assert kept["found"]["method"] == method
    if method == "sandwich":
        stored = again.bars(method, count=3)
        assert stored.to_dict() == kept["found"]


def test_bars_without_a_method_are_the_recommended_ones_kept_in_the_run(tmp_path, capsys):
    run, file = tmp_path / "run", tmp_path / "x.npy"
    np.save(file, lorenz63(1500, dt=0.02, seed=0))
    # long enough that some models move on by themselves: others have nothing to train a refit on
    sizes = ("--latent-dim", "12", "--gated", "8", "--updates", "1500", "--sequence-length", "50")
    code, _, err = call(capsys, "train", file, *sizes, "-o", run)
    assert code == 0, err
    asked = ("evaluate", run, *QUICK, "--draws", "4", "--workers", "2", "--bars")
    code, out, err = call(capsys, *asked)
    assert code == 0, err
    assert "training 4 models and a refit of each, 1,500 updates each: about" in err
    assert "models by reflected" in out
    kept = sorted((run / "findings" / "ensemble" / "members" / "tasks").rglob("*.safetensors"))
    assert sum(file.parent.name in ("member", "refit") for file in kept) == 8
    times = [file.stat().st_mtime_ns for file in kept]
    code, again, err = call(capsys, *asked)
    assert (code, again) == (0, out)
    assert "training" not in err
    assert [file.stat().st_mtime_ns for file in kept] == times


def test_mistakes_are_one_sentence(boot, series, tmp_path, capsys):
    folder, words = boot
    if not folder.exists():
        call(capsys, *words)
    for given, message in [
        (("evaluate", folder / "base", *QUICK, "--bars", "luck"), "draws must be one of"),
        (("evaluate", folder / "base", *QUICK, "--draws", "3"), "--draws are those of --bars"),
        (("evaluate", folder / "base", *QUICK, "--workers", "1"), "--workers are those of --bars"),
        (("bootstrap", series, "--base", folder / "base", "--tau", "3", "-o", tmp_path / "b"), "--tau is of"),
        (("bootstrap", series, "--method", "luck", *SIZES, "-o", tmp_path / "c"), "method must be one of"),
    ]:
        code, _, err = call(capsys, *given)
        assert code == 1
        assert message in err
