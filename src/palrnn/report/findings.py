"""What the analyses of a run found, in the form in which it is kept in its folder and drawn on the page.

Small and plain: numbers and short lists that survive JSON, checked when they are read back. ``None`` stands
for what does not exist (an exponent of minus infinity, a floor without enough data).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config

Number = float | None


class Spread(Config):
    """A distance between stretches of the true series: what a perfect model would score."""

    low: float
    median: float
    high: float
    pairs: int
    length: int


class Symbols(Config):
    """The switching codes of the free-running model: how often each is visited, where, and what follows it.

    ``codes`` are bit strings, the most visited first; ``places`` the mean raw observation while in each;
    ``transitions`` holds (from, to, probability) between them, given that the code is left. ``distinct``
    counts all codes, listed or not; ``entropy`` is that of the occupancy, in bits.
    """

    codes: list[str]
    occupancy: list[float]
    places: list[list[float]]
    transitions: list[tuple[int, int, float]]
    distinct: int
    entropy: float


class Invariants(Config):
    """Whether the free-running model has the long-run properties of the reference.

    The reference is a simulation of the true system ``simulated``, or the held-out data where that is None.
    """

    steps: int
    simulated: str | None = None
    diverged_at: int | None = None
    dstsp: Number = None
    outside: Number = None
    dstsp_floor: Spread | None = None
    spectrum_distance: Number = None
    spectrum_floor: Spread | None = None
    exponents: tuple[Number, ...] = ()
    exponents_stderr: tuple[Number, ...] = ()
    kaplan_yorke: Number = None
    reference_exponents: tuple[float, ...] = ()
    reference_source: str = ""
    mse: tuple[float, ...] = ()
    valid_steps: Number = None
    valid_time: Number = None
    symbols: Symbols | None = None

    @property
    def reference(self) -> str:
        """What the free run was compared with, in words."""
        return "the held-out data" if self.simulated is None else f"a simulation of {self.simulated}"


class Filtering(Config):
    """One pass of the particle filter over a held-out stretch; lists have one entry per scored step."""

    particles: int
    ess_threshold: float
    target: str
    log_evidence: float
    ess: list[float]
    resampled: list[bool]
    entropy_bits: list[float]
    gated: int
    process_std: float
    observation_std: float
    gate_std: float
    paths: int
    distinct_first: int


class Geometry(Config):
    """How sharp the two objectives are around the same parameters; matrices are per step.

    ``trace_itf`` is None where the forced rollout diverged. ``negative`` and what else needs matrices is None
    or empty where there were none to compute it from.
    """

    steps: int
    tau: int
    particles: int
    samples: int
    target: str
    entropy_bits: float
    gap: Number = None
    trace_itf: Number = None
    trace_observed: float
    trace_complete: float
    trace_state: float
    trace_switching: float
    mir: float
    logdet_gap: Number = None
    q90: Number = None
    negative: int | None = None
    dimension: int
    eigenvalues_itf: tuple[float, ...] = ()
    eigenvalues_observed: tuple[float, ...] = ()
    overlap: tuple[tuple[int, float], ...] = ()


class Stage(Config):
    """A model in the course of tuning: its held-out evidence, its noise and its dynamics."""

    name: str
    evidence: Number
    evidence_stderr: Number = None
    process_std: float
    observation_std: float
    dstsp: Number = None
    lyapunov: Number = None
    history: tuple[float, ...] = ()


class Tuning(Config):
    """Evidence before and after: the same held-out windows scored under each stage."""

    length: int
    windows: int
    particles: int
    target: str
    stages: list[Stage]


@dataclass(frozen=True, eq=False)
class Forecast:
    """A stretch of the held-out series with what the model makes of it, all raw ``(S, N)``.

    ``forced`` is set back to the data every ``tau`` steps; ``free`` runs alone from the first observation.
    """

    truth: Floats
    forced: Floats
    free: Floats
    tau: int


@dataclass(frozen=True, eq=False)
class Run:
    """All that a report shows of one trained model. Parts that were not computed are None, and left out."""

    name: str
    facts: dict[str, dict[str, Any]]
    columns: tuple[str, ...]
    dt: float | None
    reference: Floats
    generated: Floats
    codes: NDArray[np.bool_]
    forecast: Forecast | None = None
    loss: list[tuple[int, float]] = field(default_factory=list)
    invariants: Invariants | None = None
    filtering: Filtering | None = None
    geometry: Geometry | None = None
    tuning: Tuning | None = None

    def __repr__(self) -> str:
        parts = [name for name in ("invariants", "filtering", "geometry", "tuning") if getattr(self, name)]
        found = ", ".join(parts) or "nothing computed yet"
        return f"Run({self.name!r}, {len(self.reference)} held-out steps, {found})"
