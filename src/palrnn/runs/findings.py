"""Results that are kept: in memory, and in the folder of a run as well if there is one.

A finding counts only for the key (version, model, data, settings) under which it was kept, and only as it was
written: a file that somebody has edited or damaged is computed again.

Error bars are the finding ``bars``, ``findings/bars.json`` (`Bars.to_dict`):

    {"method": "blocks", "coverage": 0.9, "models": 20,
     "figures": {"exponent 1": {"value": 0.91, "low": 0.85, "high": 0.95, "draws": [0.9, null, ...]}, ...}}

``value`` is that of the model itself, ``low`` and ``high`` the ends of the interval (null: no answer in half
of the draws). Figures: ``exponent K``, ``Kaplan-Yorke dimension``, ``D_stsp``, ``D_H``, ``fixed point K
COLUMN``, ``fixed point K |eigenvalue J|``, ``curvature gap``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from palrnn.engine.locks import FolderInUseError
from palrnn.engine.plain import plain

if TYPE_CHECKING:
    from palrnn.runs.folder import RunFolder

R = TypeVar("R", bound="Result")


class Result(Protocol):
    """An answer that has a plain form: JSON's types, from which its class can be made again."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plain form."""
        ...


class Findings:
    """Results by name, each with the key that it belongs to."""

    def __init__(self, folder: RunFolder | None = None) -> None:
        self._folder = folder
        self._memory: dict[str, tuple[dict[str, Any], Any]] = {}

    def get(self, name: str, key: dict[str, Any], restore: Callable[[dict[str, Any]], R] | None) -> R | None:
        """Return what was found under exactly this ``key``, or None.

        ``restore`` makes it from the plain values in a file; without it only memory counts.
        """
        if name in self._memory and self._memory[name][0] == key:
            found: R = self._memory[name][1]
            return found
        if self._folder is None or restore is None:
            return None
        try:
            kept = json.loads((self._folder.findings / f"{name}.json").read_text(encoding="utf-8"))
            if kept["key"] != plain(key) or kept["digest"] != _digest(kept["key"], kept["found"]):
                return None
            found = restore(kept["found"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # missing, damaged, or of another version
            return None
        self._memory[name] = (key, found)
        return found

    def keep(self, name: str, key: dict[str, Any], found: Result) -> None:
        """Keep ``found`` under ``key``, in place of an earlier one.

        A folder that cannot be written now (read-only, or somebody else trains there) is left as it is.
        """
        self._memory[name] = (key, found)
        if self._folder is None or not self._folder.is_writable:
            return
        values, kept = plain(found.to_dict()), plain(key)
        text = json.dumps(
            {"key": kept, "digest": _digest(kept, values), "found": values}, indent=2, allow_nan=False
        )
        try:
            self._folder.write_finding(name, text + "\n")
        except FolderInUseError:
            return


def _digest(key: Any, found: Any) -> str:
    """Return a digest of what was written, by which an edit is seen."""
    text = json.dumps([key, found], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
