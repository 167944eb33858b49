"""What a report shows of one trained model: its results, and the few series that are drawn with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

if TYPE_CHECKING:
    from palrnn.forcing import Evaluation
    from palrnn.inference import Forecast
    from palrnn.runs.record import SearchTable


@dataclass(frozen=True, eq=False)
class Fan:
    """A forecast beside what came.

    ``past (R, N)`` are the rows that the model had seen and ``truth (S, N)`` those to come, raw; ``coverage``
    is the share of the latter that central bands hold, by their level, over ``origins`` such forecasts;
    ``noise`` says in words what the paths differ by.
    """

    past: Floats
    truth: Floats
    forecast: Forecast
    coverage: Mapping[float, float]
    origins: int
    noise: str


@dataclass(frozen=True, eq=False)
class Run:
    """One trained model as the sections see it.

    ``results`` are the answers to the questions asked, by name: the score card ("invariants"), the comparison
    of geometries ("geometry") and so on, in the classes that `Reconstruction` returns them in; what was not
    asked is missing. ``reference`` and ``generated`` are raw ``(T, N)``, ``codes (T, P)`` go with the latter,
    ``losses`` are (update, loss) and ``measured`` the free runs on the way, ``advice`` is what to try next
    where the verdict is not good, ``search`` what else was tried where a search came to the model, ``fan`` a
    forecast, or words on why there is none, ``resting (K, N)`` the raw places of the fixed points, and
    ``bars`` the error bars that were kept with the run, in their plain form: ``method``, ``models``, and
    ``figures`` by name, each with ``value``, ``low`` and ``high``.
    """

    name: str
    facts: Mapping[str, Mapping[str, Any]]
    columns: tuple[str, ...]
    dt: float | None
    reference: Floats
    generated: Floats
    codes: NDArray[np.bool_]
    losses: list[tuple[int, float]] = field(default_factory=list)
    measured: Sequence[Evaluation] = ()
    results: Mapping[str, Any] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    search: SearchTable | None = None
    fan: Fan | str = ""
    resting: Floats | None = None
    bars: Mapping[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        """Return the result of this name."""
        return self.results[name]

    def __repr__(self) -> str:
        found = ", ".join(self.results) or "nothing computed yet"
        return f"Run({self.name!r}, {len(self.reference)} held-out steps, {found})"
