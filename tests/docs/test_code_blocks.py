"""Every Python block in the README and in the documentation runs, page by page, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        # blank lines in front, so that a traceback points at the line of the page
        exec(compile("\n" * line + block[1], str(page), "exec", dont_inherit=True), names)
