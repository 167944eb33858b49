"""Every script of the gallery runs and makes a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.stem != "lorenz_model")


# each trains models for a quarter of a minute
_SLOW = ("duffing", "shallow")


@pytest.mark.parametrize(
    "script",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in _SLOW else []) for p in SCRIPTS],
    ids=[path.stem for path in SCRIPTS],
)
def test_a_script_of_the_gallery_draws_its_picture(script, tmp_path):
    picture = tmp_path / "picture.png"
    # scripts share their trained model through the folder for temporary files
    environment = os.environ | {"TMPDIR": str(tmp_path.parent)}
    command = [sys.executable, "-W", "error", script, picture]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    pixels = imread(picture)[..., :3]
    # ink: a picture with nothing drawn in it has white pixels and the few of its frame
    assert np.mean(pixels.min(axis=-1) < 0.9) > 0.01


def test_the_gallery_lists_every_script():
    text = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in text for path in SCRIPTS)
