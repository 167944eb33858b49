"""Where tables go: between two marks of a document."""

from __future__ import annotations

from pathlib import Path

from palrnn.engine.files import write_text


def publish(text: str, page: Path | None, begin: str, end: str) -> None:
    """Print ``text``; with a ``page``, also put it there in place of what is between its marks."""
    print(text)
    if page is not None:
        before, found, rest = page.read_text(encoding="utf-8").partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{page} has no place for this table: it must hold {begin} and, later, {end}")
        write_text(page, f"{before}{begin}\n\n{text}\n\n{end}{after}")
