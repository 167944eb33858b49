"""Every page of the documentation can be reached."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    str(path.relative_to(DOCS).with_suffix(""))
    for pattern in ("*.md", "*.ipynb")
    for path in DOCS.rglob(pattern)
}


def test_every_page_is_in_the_table_of_contents():
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.S)
    listed = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    assert len(listed) == len(set(listed))
    assert set(listed) == PAGES - {"index"}


def test_no_page_is_overwritten_by_one_that_the_builder_makes():
    assert not PAGES & {"search", "genindex", "py-modindex"}


def test_links_between_pages_lead_somewhere():
    readme = DOCS.parent / "README.md"
    for page in (readme, *DOCS.rglob("*.md")):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), (page.name, link)
