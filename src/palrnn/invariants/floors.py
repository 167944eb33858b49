"""What a perfect model would score: distances between independent stretches of the true system.

D_stsp and D_H between two finite stretches of the same attractor are not zero. A score means something only
beside this floor, computed at the same length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data.systems import System
from palrnn.engine.checks import Floats, as_float, as_int, as_series
from palrnn.engine.gaps import first_whole_row, refuse_empty_columns, whole_rows
from palrnn.engine.seeds import generator
from palrnn.invariants.spectrum import spectrum_distance
from palrnn.invariants.state_space import delayed, dstsp

#: Steps before a simulated stretch: from near an unstable fixed point it takes thousands to spiral away.
SETTLE = 10_000


@dataclass(frozen=True, eq=False)
class Floor:
    """The true-versus-true distances ``values (pairs,)`` between stretches of ``length`` steps."""

    values: Floats
    length: int

    @property
    def median(self) -> float:
        """The median distance."""
        return float(np.median(self.values))

    @property
    def low(self) -> float:
        """The smallest distance."""
        return float(self.values.min())

    @property
    def high(self) -> float:
        """The largest distance."""
        return float(self.values.max())

    def __repr__(self) -> str:
        spread = f"median {self.median:.4g}, {self.low:.4g} to {self.high:.4g}"
        return f"Floor({spread}, {len(self.values)} pairs of {self.length} steps)"


def dstsp_floor(
    source: System | ArrayLike,
    *,
    length: int = 9000,
    pairs: int = 20,
    dt: float = 0.01,
    process_std: float = 0.0,
    bins: int = 30,
    smoothing: float = 1e-5,
    protocol: str = "paper",
    delay: int | None = None,
    seed: int = 0,
) -> Floor:
    """Return the D_stsp between pairs of independent true stretches of ``length`` steps.

    ``source`` is a `System`, from which each stretch is simulated anew (with ``dt`` and ``process_std``), or
    a long series ``(T, N)`` with ``T >= 2 * length``, of which stretches that do not overlap are paired at
    random.
    """
    couples = _couples(source, length, pairs, dt, process_std, seed, delay)
    counting: dict[str, Any] = {"bins": bins, "smoothing": smoothing, "protocol": protocol, "delay": delay}
    return _floor(couples, length, lambda a, b: dstsp(a, b, **counting).value)


def spectrum_floor(
    source: System | ArrayLike,
    *,
    length: int = 9000,
    pairs: int = 20,
    dt: float = 0.01,
    process_std: float = 0.0,
    sigma: float = 20.0,
    seed: int = 0,
) -> Floor:
    """Return the D_H between pairs of independent true stretches; ``source`` as in `dstsp_floor`."""
    couples = _couples(source, length, pairs, dt, process_std, seed)
    return _floor(couples, length, lambda a, b: spectrum_distance(a, b, sigma=sigma))


def score_floors(
    source: System | ArrayLike,
    *,
    delay: int | None = None,
    bins: int,
    smoothing: float,
    protocol: str,
    **how: Any,
) -> tuple[Floor, Floor]:
    """Return `dstsp_floor` and `spectrum_floor` of the same stretches, which take the longest to simulate.

    ``how`` are their settings in common: ``length``, ``pairs``, ``dt``, ``process_std`` and ``seed``.
    """
    counting: dict[str, Any] = {"bins": bins, "smoothing": smoothing, "protocol": protocol, "delay": delay}
    if not isinstance(source, System):
        # stretches that vary in a delay space are not the same as those that vary
        return dstsp_floor(source, **how, **counting), spectrum_floor(source, **how)
    couples = _couples(source, **how)
    return (
        _floor(couples, how["length"], lambda a, b: dstsp(a, b, **counting).value),
        _floor(couples, how["length"], spectrum_distance),
    )


def _floor(
    couples: list[tuple[Floats, Floats]], length: int, score: Callable[[Floats, Floats], float]
) -> Floor:
    values = np.array([score(a, b) for a, b in couples])
    values.flags.writeable = False
    return Floor(values, length)


def _couples(
    source: System | ArrayLike,
    length: int,
    pairs: int,
    dt: float,
    process_std: float,
    seed: int,
    delay: int | None = None,
) -> list[tuple[Floats, Floats]]:
    length, pairs = as_int(length, "length", least=2), as_int(pairs, "pairs", least=1)
    dt, process_std = as_float(dt, "dt", above=0.0), as_float(process_std, "process_std", least=0.0)
    if isinstance(source, System):
        how: dict[str, Any] = {"dt": dt, "process_std": process_std, "discard": SETTLE}
        seeds = generator(seed).integers(0, 2**32, (pairs, 2)).tolist()
        return [
            (source.simulate(length, seed=a, **how), source.simulate(length, seed=b, **how)) for a, b in seeds
        ]
    series = as_series(source, "source", allow_nan=True)
    refuse_empty_columns([series], "source")
    first_whole_row(series, "source")
    stretches = len(series) // length
    if stretches < 2:
        raise ValueError(f"source must hold two stretches of length={length}, has {len(series)} steps")
    parts = series[: stretches * length].reshape(stretches, length, -1)
    seen = ~np.isnan(parts)
    fit = [k for k in range(stretches) if varies(parts[k], delay)]
    ordered = [(a, b) for a in fit for b in fit if a != b]
    if not seen.all():
        # for D_H values of every column at the same places of both stretches
        ordered = [(a, b) for a, b in ordered if (seen[a] & seen[b]).any(axis=0).all()]
    if not ordered:
        raise ValueError(
            f"source must hold two stretches of length={length} to compare: in which every column varies, "
            "and which gaps leave something of"
        )
    chosen = generator(seed).permutation(len(ordered))[:pairs]
    return [(parts[ordered[i][0]], parts[ordered[i][1]]) for i in chosen]


def has_floors(series: Floats, length: int, delay: int | None = None) -> bool:
    """Whether ``series (T, N)`` holds two stretches of ``length`` for `dstsp_floor` and `spectrum_floor`."""
    try:
        for space in {delay, None}:
            _couples(series, length, 1, 1.0, 0.0, 0, space)
    except ValueError:
        return False
    return True


def varies(part: Floats, delay: int | None = None) -> bool:
    """Whether rows of ``part`` without gaps, in the delay space if there is one, differ in every column."""
    rows = part if delay is None else delayed(part, delay)
    whole = rows[whole_rows(rows)]
    return len(whole) > 1 and bool((whole.min(axis=0) < whole.max(axis=0)).all())
