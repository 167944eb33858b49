"""What a report shows of one trained model: its results, and the few series that are drawn with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

if TYPE_CHECKING:
    from palrnn.runs.record import SearchTable


@dataclass(frozen=True, eq=False)
class Run:
    """One trained model as the sections see it.

    ``results`` are the answers to the questions asked, by name: the score card ("invariants"), the comparison
    of geometries ("geometry") and so on, in the classes that `Reconstruction` returns them in; what was not
    asked is missing. ``reference`` and ``generated`` are raw ``(T, N)``, ``codes (T, P)`` go with the latter,
    ``losses`` are (update, loss), ``advice`` is what to try next where the verdict is not good, and
    ``search`` what else was tried where a search came to the model.
    """

    name: str
    facts: Mapping[str, Mapping[str, Any]]
    columns: tuple[str, ...]
    dt: float | None
    reference: Floats
    generated: Floats
    codes: NDArray[np.bool_]
    losses: list[tuple[int, float]] = field(default_factory=list)
    results: Mapping[str, Any] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    search: SearchTable | None = None

    def __getitem__(self, name: str) -> Any:
        """Return the result of this name."""
        return self.results[name]

    def __repr__(self) -> str:
        found = ", ".join(self.results) or "nothing computed yet"
        return f"Run({self.name!r}, {len(self.reference)} held-out steps, {found})"
