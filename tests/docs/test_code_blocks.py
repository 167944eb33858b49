"""Every Python block in the README and in the documentation runs, page by page, in order."""

from __future__ import annotations

import functools
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
    names: dict[str, object] = {"__name__": "page"}
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        # blank lines in front, so that a traceback points at the line of the page
        exec(compile("\n" * line + block[1], str(page), "exec", dont_inherit=True), names)
    if page.name == "README.md":
        (shown,) = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        assert _form(capsys.readouterr().out) == _form(shown)


def _form(printed):
    """Return the lines without their numbers, and without the verdict, which depends on the training."""
    lines = re.sub(r"-?[\d,.]*\d(e-?\d+)?", "#", printed).strip().splitlines()
    return [re.sub(r"^(Scorecard:|  free runs +).*", r"\1", line) for line in lines]
