"""CONTRIBUTING.md leads through the files in the order in which a series meets them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import palrnn
from palrnn.engine.progress import quiet

SOURCES = Path(palrnn.__file__).resolve().parent
PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


def test_a_series_meets_the_files_in_the_order_of_the_page():
    section = PAGE.read_text().partition("## Following one series")[2].partition("\n## ")[0]
    listed = re.findall(r"^    (\S+\.py) ", section, flags=re.M)
    assert len(listed) > 10
    t, visited = 0.2 * np.arange(400), {}
    x = np.column_stack([np.sin(t), np.cos(t)])

    def reconstruct():
        palrnn.reconstruct(x, updates=2, latent_dim=4, gated=1, progress=quiet)

    def look(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(SOURCES)):
            visited.setdefault(Path(file).relative_to(SOURCES).as_posix())

    reconstruct()  # imports and compiles, which is no part of the walk
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        reconstruct()
    finally:
        sys.setprofile(before)
    order = list(visited)
    assert [file for file in order if file in listed] == listed


def test_what_the_page_names_is_there():
    section = PAGE.read_text().partition("| to add | files |")[2].partition("\n## ")[0]
    for place in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", section):
        assert (SOURCES / place).exists(), place
