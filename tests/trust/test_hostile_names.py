"""Names of files, columns and titles are text in the report, whatever they look like."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from tiny_reconstruction import TINY

import palrnn
from palrnn.cli.main import main

HOSTILE = "<img src=x onerror=alert(1)>\"'&<script>"


class Elements(HTMLParser):
    """Counts elements and collects their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}


def page(folder, name, columns, title):
    x = palrnn.lorenz63(600, seed=1)
    folder.mkdir()
    series = folder / f"{name}.csv"
    quoted = ",".join('"' + column.replace('"', '""') + '"' for column in columns)
    np.savetxt(series, x, delimiter=",", header=quoted, comments="", encoding="utf-8")
    TINY.to_toml(folder / "tiny.toml")
    sizes = ["--latent-dim", "5", "--gated", "2", "--updates", "100", "--sequence-length", "30", "--tau", "5"]
    for words in (
        ["train", str(series), *sizes, "-o", str(folder / name), "-q"],
        [
            "report",
            str(folder / name),
            "--no-tune",
            "--config",
            str(folder / "tiny.toml"),
            "--title",
            title,
            "-q",
        ]
        + ["-o", str(folder / "page.html")],
    ):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
    return (folder / "page.html").read_text()


def test_hostile_names_become_text_and_nothing_else(tmp_path):
    plain = Elements(page(tmp_path / "plain", "lorenz", ["x", "y", "z"], "A title"))
    text = page(tmp_path / "hostile", HOSTILE, [HOSTILE, "y</td>", "{z}"], f"</title>{HOSTILE}")
    hostile = Elements(text)
    assert hostile.tags == plain.tags
    assert not [name for name in hostile.attributes if name.startswith("on")]
    assert "onerror=alert(1)" in text  # it is there, as text
