"""Every script of the gallery runs and makes a picture."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.stem not in ("lorenz_model", "words"))
PICTURES = EXAMPLES.parent / "docs" / "pictures"
# at full length the first picture takes twenty minutes
_SHORT = ("--seeds", "3", "1", "--updates", "60", "--runs", "runs")
# and that of one model at full length half a minute
_SHORTER = {"sunspots": ("--updates", "300")}
# stands in for the package that carries the series of the laser
_LASER = """
import numpy as np

def santafe_laser():
    t = np.arange(1500)
    return np.round(100 + 80 * np.sin(0.83 * t) * np.cos(0.02 * t)).astype(int)[:, None]
"""


# each takes five seconds to a quarter of a minute
_SLOW = ("attractor", "duffing", "gaps", "shallow", "two_geometries")


@pytest.mark.parametrize(
    "script",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in _SLOW else []) for p in SCRIPTS],
    ids=[path.stem for path in SCRIPTS],
)
@pytest.mark.parametrize("updates", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_script_of_the_gallery_draws_its_picture(script, tmp_path, monkeypatch, updates):
    picture = tmp_path / "picture.png"
    if script.stem == "attractor":
        _draw_the_attractor(script, picture)
    else:
        run_here(script, picture, monkeypatch, updates)
    pixels = imread(picture)[..., :3]
    # ink: a picture with nothing drawn in it has white pixels and the few of its frame
    assert np.mean(pixels.min(axis=-1) < 0.9) > 0.01


def run_here(script, argument, monkeypatch, updates=2_000):
    """Run a script as a program of its own, in this process, which has its imports already.

    The model that most of them share is trained for some ``updates``; by itself for 10,000.
    """
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setattr(sys, "argv", [str(script), str(argument), *_SHORTER.get(script.stem, ())])
    # scripts share their trained model through the folder for temporary files
    monkeypatch.setattr(tempfile, "tempdir", str(argument.parent.parent))
    monkeypatch.setattr(importlib.import_module("lorenz_model").trained, "__defaults__", (updates,))
    runpy.run_path(str(script), run_name="__main__")


def _draw_the_attractor(script, picture):
    folder = picture.parent
    (folder / "reservoirpy").mkdir()
    (folder / "reservoirpy" / "__init__.py").touch()
    (folder / "reservoirpy" / "datasets.py").write_text(_LASER)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-W", "error", script, picture, *_SHORT]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    _check_the_median(json.loads(picture.with_suffix(".json").read_text()))


def _check_the_median(table):
    assert [len(runs) for runs in table.values()] == [3, 1]
    for runs in table.values():
        (shown,) = [run for run in runs if run["shown"]]
        assert shown["dstsp"] == np.median([run["dstsp"] for run in runs])


def test_the_table_behind_the_first_picture_shows_medians():
    for runs in json.loads((PICTURES / "attractor.json").read_text()).values():
        (shown,) = [run for run in runs if run["shown"]]
        scores = sorted(np.inf if run["dstsp"] is None else run["dstsp"] for run in runs)
        assert shown["dstsp"] == scores[(len(scores) - 1) // 2]


def test_the_gallery_lists_every_script():
    text = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in text for path in EXAMPLES.glob("*.py"))


def test_the_page_of_words_shows_every_picture_that_its_script_draws(tmp_path, monkeypatch):
    run_here(EXAMPLES / "words.py", tmp_path, monkeypatch)
    drawn = {path.name for path in tmp_path.glob("*.png")}
    page = (EXAMPLES.parent / "docs" / "words.md").read_text()
    assert set(re.findall(r"pictures/(words-\w+\.png)", page)) == drawn
    assert {path.name for path in PICTURES.glob("words-*.png")} == drawn
