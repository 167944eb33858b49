"""`SearchTable`: what a search tried before it came to a model, kept with that model's run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_COLUMNS = ("rank", "candidate", "updates", "grade")


@dataclass(frozen=True)
class SearchTable:
    """The candidates of a search, the best first, and why the first of them won.

    A row is a dictionary of plain values: ``rank``, ``candidate``, ``rung`` and ``updates`` (how far it was
    trained), its settings, and what it came to on the validation stretch (``grade``, ``alive``, ``dstsp``,
    ``spectrum_distance``, ``loss``, ``verdict``).
    """

    rows: list[dict[str, Any]] = field(repr=False)
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"why": self.why, "rows": self.rows}

    @classmethod
    def from_dict(cls, values: Any) -> SearchTable:
        """Return the table of `to_dict`; refuse anything else."""
        if not isinstance(values, Mapping) or not isinstance(values.get("why"), str):
            raise ValueError("not the table of a search")
        rows = values.get("rows")
        if not isinstance(rows, list) or not all(
            isinstance(row, dict) and all(name in row for name in _COLUMNS) for row in rows
        ):
            raise ValueError("not the table of a search")
        return cls(rows, values["why"])
