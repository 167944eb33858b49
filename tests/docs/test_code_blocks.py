"""Every Python block in the README and in the documentation runs, page by page, in order."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest

import palrnn

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        # the only page that trains with the defaults, which takes half a minute
        short = functools.partial(palrnn.reconstruct, latent_dim=10, gated=4, updates=100)
        monkeypatch.setattr(palrnn, "reconstruct", short)
    execute(page)
    if page.name == "README.md":
        assert _form(capsys.readouterr().out) == _form(shown())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_five_lines_of_the_readme_give_a_model_like_the_one_shown(tmp_path, monkeypatch, capsys):
    """With the default training: another processor makes another model, as another of its ten seeds would."""
    monkeypatch.chdir(tmp_path)
    execute(ROOT / "README.md")
    printed = capsys.readouterr().out
    assert _form(printed) == _form(shown())
    assert re.search(r"^Scorecard: (good|fair)", printed)
    assert "moves on for 100,000 steps from 10 of 10 starts" in printed
    (score, floor), (exponent, true), (low, high, came) = (
        map(float, re.search(line, printed).groups())
        for line in (
            r"D_stsp, hard-gated +([\d.]+) \(.*; floor ([\d.]+)\)",
            r"largest exponent, hard-gated +([\d.]+) \(true: ([\d.]+)\)",
            r"x within ([-\d.]+) and ([-\d.]+), 90 % sure; it was ([-\d.]+)",
        )
    )
    seeds = json.loads((ROOT / "docs" / "pictures" / "attractor.json").read_text())["Lorenz-63, 5 % noise"]
    # half as far again from the truth as the worst of the ten seeds
    assert score - floor < 1.5 * max(seed["dstsp"] - seed["floor"] for seed in seeds)
    assert abs(exponent - true) < 1.5 * max(abs(seed["exponent"] - true) for seed in seeds)
    assert -25 < low < high < 25
    assert abs(came) < 25


def execute(page):
    """Run the blocks of a page, one after the other, in one namespace."""
    names: dict[str, object] = {"__name__": "page"}
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        # blank lines in front, so that a traceback points at the line of the page
        exec(compile("\n" * line + block[1], str(page), "exec", dont_inherit=True), names)


def shown():
    """Return the output that README.md shows."""
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return block


def _form(printed):
    """Return the lines without their numbers, and without the verdict, which depends on the training."""
    lines = re.sub(r"-?[\d,.]*\d(e-?\d+)?", "#", printed).strip().splitlines()
    return [re.sub(r"^(Scorecard:|  free runs +).*", r"\1", line) for line in lines]
