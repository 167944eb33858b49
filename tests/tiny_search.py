"""A search that takes a few seconds: four small candidates on a short series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import palrnn
from palrnn.data import lorenz63
from palrnn.engine.progress import quiet

SIZES = {"latent_dim": 6, "gated": 2, "sequence_length": 20, "batch_size": 2}
#: Files about the course of the work rather than its results.
ABOUT = ("timings.jsonl", "sessions.jsonl", "run.json", ".lock")


def series() -> Any:
    return lorenz63(1200, seed=3)


def tiny_search(x: Any = None, **settings: Any) -> palrnn.SearchResult:
    usual = {"dt": 0.01, "updates": 288, "workers": 1, "seed": 5, "progress": quiet}
    return palrnn.search(series() if x is None else x, **(usual | SIZES | settings))


def results(folder: Path) -> dict[str, bytes]:
    """Return all files of a search by name."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in ABOUT]
    names = {str(path.relative_to(folder)): path for path in files}
    # whoever has looked at the winner since leaves findings
    return {name: path.read_bytes() for name, path in names.items() if "findings" not in path.parts}
