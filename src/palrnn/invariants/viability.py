"""`viability`: what becomes of the free run in the long term.

A model that looks chaotic over 9,000 steps can come to rest after 20,000, so a score of a short run says
little about it. Here the run is long, from several starts, and its end is looked at:

- it *diverges*: a state left every bound;
- it *rests*: over the last tenth of the run no coordinate moves by more than a hundredth of a unit;
- it is on a *cycle*: the last states repeat themselves, exactly after k steps (a cycle of the map), or as a
  loop that the run follows again and again (a periodic orbit of a flow that was sampled in time): for 20
  turns, or of a long one for two fifths of the run, at least 5 turns, so that of 100,000 steps loops of up to
  8,000 are seen;
- it *leaves* the region of the data: the last tenth lies outside of it;
- otherwise it *moves on*.

Units are those of the model, in which the data have deviation one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_float, as_int, as_series
from palrnn.engine.display import Display, bars_svg
from palrnn.engine.gaps import first_whole_row, refuse_empty_columns, whole_rows
from palrnn.invariants.free_run import checked_drives, drives_offsets
from palrnn.invariants.kernels import viability as kernels
from palrnn.model import PALRNN, Surrogate, drift_of
from palrnn.model.engine import BOUND, advance

Outcome = Literal["moves on", "rests", "cycle", "diverges", "leaves"]

#: Motion below this part of a unit counts as none.
STILL = 0.01
# the part of the run that is looked at, and how far outside the data's box, in widths of it, is outside
_LAST, _MARGIN = 0.1, 1.0
# a loop is closed if the run comes back this near, after having been this far; and is followed this closely
_BACK, _AWAY, _TRACK = 0.1, 0.4, 0.05
# for so many turns, or of a long loop fewer in so much of the run; how many that drift are tried
_TURNS, _FEWEST_TURNS, _FOLLOWED, _TRIES = 20, 5, 0.4, 12
#: The steps of a loop are at most this part of its size; those of a map that jumps about are longer.
STRIDE = 0.25
# turns of a loop differ less than twice as much as two in a row, but for this part of _TRACK
_DRIFT = 0.1
_EXACT = 1e-6
# states that are kept of a run, from which the step of its end is told, and steps that are made at once
_KEPT, _BLOCK = 10_000, 1000
# of all states, in which loops are looked for, the first units: these few tell one state from another
_SEEN, _COORDINATES = 100_000, 8
# units of all runs that go side by side: 160 megabytes of states at 100,000 steps; and coordinates: 40
_UNITS, _SIDE_BY_SIDE = 1000, 100


@dataclass(frozen=True)
class Fate:
    """What became of one run.

    ``step`` is when it did: came to rest, joined the cycle, left every bound or the region; None for a run
    that moves on. ``period`` is that of a cycle, in steps.
    """

    outcome: Outcome
    step: int | None = None
    period: int | None = None

    def __str__(self) -> str:
        if self.step is None:
            return "moves on"
        what = {
            "rests": "comes to rest",
            "cycle": f"falls onto a cycle of period {self.period}",
            "diverges": "diverges",
            "leaves": "leaves the region of the data",
        }[self.outcome]
        return f"{what} after {self.step:,} steps"


@dataclass(frozen=True, eq=False)
class Viability(Display):
    """The fates of free runs of ``steps`` steps, one per start, and their last states ``ends (S, M)``."""

    fates: tuple[Fate, ...]
    steps: int
    ends: Floats | None = field(default=None, repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """How many runs had each outcome, the most frequent first."""
        return dict(Counter(fate.outcome for fate in self.fates).most_common())

    @property
    def alive(self) -> int:
        """The number of runs that move on."""
        return sum(fate.outcome == "moves on" for fate in self.fates)

    @property
    def viable(self) -> bool:
        """Whether all of them do."""
        return self.alive == len(self.fates)

    @property
    def verdict(self) -> str:
        """One sentence: how many move on, and what the others do, the earliest first."""
        total = len(self.fates)
        if self.viable:
            return f"moves on for {self.steps:,} steps from {total} of {total} starts"
        ended = [fate for fate in self.fates if fate.outcome != "moves on"]
        first = min(ended, key=lambda fate: self.steps if fate.step is None else fate.step)
        return f"{first} from one start; {self.alive} of {total} starts move on for {self.steps:,} steps"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "verdict": self.verdict,
            "steps": self.steps,
            "alive": self.alive,
            "starts": len(self.fates),
            "fates": [asdict(fate) for fate in self.fates],
        }

    def heading(self) -> str:
        """Return what it comes to."""
        return f"Viability: {self.verdict}"

    def facts(self) -> list[tuple[str, str]]:
        """Return what becomes of how many runs."""
        return [(outcome, f"{count} of {len(self.fates)} starts") for outcome, count in self.counts.items()]

    def records(self) -> list[dict[str, Any]]:
        """Return one row per start: ``outcome``, ``step`` and ``period``."""
        return [asdict(fate) for fate in self.fates]

    def picture(self) -> str:
        """Return how long each run moves on, as bars."""
        ends = [self.steps if fate.step is None else fate.step for fate in self.fates]
        named = zip(self.fates, ends, strict=True)
        return bars_svg([(fate.outcome, end / self.steps) for fate, end in named])

    def __repr__(self) -> str:
        return f"Viability({self.verdict})"


def viability(
    model: Surrogate | PALRNN,
    starts: ArrayLike,
    steps: int = 100_000,
    *,
    inputs: ArrayLike | None = None,
    data: ArrayLike | None = None,
    still: float = STILL,
) -> Viability:
    """Return what becomes of free runs of ``model`` from each of ``starts (S, N)``, at least 10 of them.

    ``starts`` are observations in the model's coordinates (rows of the standardised data, say, which
    `spread_starts` picks). ``data (T, N)`` is the series whose region the run should stay in: a box that
    exceeds that of the data by its own width on each side; without it no run leaves. Of a PAL-RNN the
    hard-gated drift runs. Motion below ``still`` counts as none. A driven model runs along ``inputs (T, K)``,
    or ``(S, T, K)`` for each start its own, repeated where the run outlasts them.
    """
    drift = drift_of(model)
    points = as_series(starts, "starts", min_steps=10, dim=drift.observed_dim)
    steps = as_int(steps, "steps", least=1000)
    threshold = as_float(still, "still", above=0.0)
    box = None if data is None else _box(as_series(data, "data", dim=drift.observed_dim, allow_nan=True))
    drives = checked_drives(drift, inputs, len(points))
    seen = min(_COORDINATES, drift.latent_dim)
    fates, ends = list[Fate](), list[Floats]()
    together = max(1, min(_UNITS // drift.latent_dim, _SIDE_BY_SIDE // seen))
    for first in range(0, len(points), together):
        group = drift.embed(points[first : first + together])
        own = drives if drives is None or len(drives) == 1 else drives[first : first + together]
        runs = _Runs(drift, group, steps, own)
        fates += [runs.fate(s, box, threshold) for s in range(len(group))]
        ends.append(runs.last[-1])
    return Viability(tuple(fates), steps, np.concatenate(ends))


def spread_starts(x: ArrayLike, count: int = 10) -> Floats:
    """Return ``count`` rows of ``x (T, N)`` at equal distances in time, from the first on.

    Rows with gaps (NaN) are passed over.
    """
    series = as_series(x, min_steps=1, allow_nan=True)
    return series[spread_rows(series, count)]


def spread_rows(series: Floats, count: int = 10) -> NDArray[np.int64]:
    """Return the numbers of the rows that `spread_starts` picks."""
    count = as_int(count, "count", least=1)
    first_whole_row(series, "x")
    whole = np.flatnonzero(whole_rows(series))
    return whole[np.linspace(0, len(whole) - 1, count).round().astype(np.int64)]


def _box(data: Floats) -> tuple[Floats, Floats]:
    refuse_empty_columns([data], "data")
    low, high = np.nanmin(data, axis=0), np.nanmax(data, axis=0)
    margin = _MARGIN * (high - low)
    return low - margin, high + margin


class _Runs:
    """Free runs side by side: some of their states, the last tenth whole, and which diverged when.

    ``thin (K, S, M)`` is every ``stride``-th state from the start on, ``last (L, S, M)`` the end, and
    ``seen (S, n, c)`` every ``every``-th state after the start in its first coordinates, as float32.
    ``longest`` is the longest cycle that is one: what drives the runs is repeated after its own length, and
    so may they be.
    """

    def __init__(self, drift: Surrogate, starts: Floats, steps: int, drives: Floats | None = None) -> None:
        self.steps, self.stride = steps, max(1, steps // _KEPT)
        self.every = -(-steps // _SEEN)
        self.longest = steps
        if drives is not None and np.ptp(drives, axis=1).any():
            self.longest = drives.shape[1] - 1
        seen = min(_COORDINATES, drift.latent_dim)
        self.seen = np.zeros((len(starts), steps // self.every, seen), dtype=np.float32)
        self.diverged: dict[int, int] = {}
        z, thin, last = starts, [starts[None]], list[Floats]()
        done, moving = 0, True
        while done < steps:
            count = min(_BLOCK, steps - done) if moving else steps - done
            # a state that is its own successor, to the last bit, stays, if nothing drives it
            pushes = () if drives is None else (drives_offsets(drift, drives, done, count),)
            states = advance(drift, z, count, *pushes) if moving else np.broadcast_to(z, (count, *z.shape))
            # a maximum of NaN is NaN, which no bound holds
            if moving and not -BOUND <= states.min() <= states.max() <= BOUND:
                outside = ~(np.abs(states).max(axis=2) <= BOUND)
                for s in np.flatnonzero(outside.any(axis=0)):
                    self.diverged.setdefault(int(s), done + int(outside[:, s].argmax()) + 1)
                    states[:, s] = 0.0
            z = states[-1]
            thin.append(states[self.stride - 1 - done % self.stride :: self.stride])
            some = states[self.every - 1 - done % self.every :: self.every, :, :seen]
            self.seen[:, done // self.every :][:, : len(some)] = some.swapaxes(0, 1)
            begin = steps - max(2, int(_LAST * steps)) - done
            if begin < len(states):
                # an end that never moves is told by one state
                last.append(states[max(0, begin) :] if moving or begin < 0 else states[-1:])
            moving = moving and not (drives is None and (states[-1] == states[-2:][0]).all())
            done += count
            if len(self.diverged) == len(starts):
                break
        self.thin = np.concatenate(thin)
        self.last = np.concatenate(last) if last else states

    def fate(self, s: int, box: tuple[Floats, Floats] | None, still: float) -> Fate:
        """Return what became of run ``s``."""
        if s in self.diverged:
            return Fate("diverges", self.diverged[s])
        thin, last = self.thin[:, s], self.last[:, s]
        if np.ptp(last, axis=0).max() <= still:
            return Fate("rests", self._joined(np.abs(thin - last[-1]).max(axis=1) > still))
        cycle = self._cycle(s)
        if cycle is not None:
            return cycle
        if box is not None and _outside(last, box).all():
            inside = np.flatnonzero(~_outside(thin, box))
            return Fate("leaves", self.stride * (int(inside[-1]) + 1) if len(inside) else 0)
        return Fate("moves on")

    def _cycle(self, s: int) -> Fate | None:
        """Return the cycle that run ``s`` is on, if it is."""
        thin, last = self.thin[:, s], self.last[:, s]
        period = _exact_period(last, self.longest)
        if period is not None:
            turn = last[-period:]
            # thin states are those of the steps 0, stride, 2 stride, ...; a turn ends with the last step
            phases = (self.stride * np.arange(len(thin)) - self.steps - 1) % period
            away = np.abs(thin - turn[phases]).max(axis=1) > _TRACK * float(np.ptp(turn, axis=0).max())
            return Fate("cycle", self._joined(away), period)
        found = _loop(self.seen[s], self.longest // self.every)
        if found is None:
            return None
        period, followed = (self.every * each for each in found)
        whole = followed >= self.every * (len(self.seen[s]) - 1)
        return Fate("cycle", 0 if whole else self.steps - followed, period)

    def _joined(self, away: NDArray[np.bool_]) -> int:
        """Return the step from which on no thin state is ``away (K,)``, to about a stride."""
        moving = np.flatnonzero(away)
        return self.stride * (int(moving[-1]) + 1) if len(moving) else 0


def _outside(states: Floats, box: tuple[Floats, Floats]) -> NDArray[np.bool_]:
    seen = states[:, : len(box[0])]
    return np.asarray(((seen < box[0]) | (seen > box[1])).any(axis=1))


def _exact_period(last: Floats, longest: int) -> int | None:
    """Return after how many steps the states ``last (L, M)`` repeat themselves, but for rounding."""
    distance = np.abs(last[1 : len(last) // 2] - last[0]).max(axis=1)
    size = float(np.ptp(last, axis=0).max())
    for k in np.flatnonzero(distance <= _EXACT * size)[:1] + 1:
        if k <= longest and np.abs(last[k:] - last[:-k]).max() <= _EXACT * size:
            return int(k)
    return None


def _loop(run: Any, longest: int) -> tuple[int, int] | None:
    """Return how long a turn is, and for how long ``run (T, c)`` has followed it, if it goes round and round.

    A run that only drifts away from its last turn, slowly, is quasi-periodic, or has not yet come to rest.
    """
    long, last = int(_FOLLOWED * len(run)), len(run) - 1
    most = min(longest, long // _FEWEST_TURNS)
    backwards = run[: -most - 2 : -1]
    size = float(np.ptp(run[-max(2, int(_LAST * len(run))) :], axis=0).max())
    # of the turn of each length that the run may end with, how large it is, and its longest step
    range_ = np.maximum.accumulate(backwards) - np.minimum.accumulate(backwards)
    sizes, steps = range_.max(axis=1), np.abs(np.diff(backwards, axis=0)).max(axis=1)
    strides = np.maximum.accumulate(np.append(0.0, steps))
    tries = 0
    for k in _returns(np.abs(backwards - backwards[0]).max(axis=1), size):
        near = _TRACK * float(sizes[k])
        # the steps of a sampled flow are short; those of a map that jumps about would cross everything
        if strides[k] > STRIDE * sizes[k] or tries >= _TRIES:
            continue
        wanted, followed = max(k * min(_TURNS, long // k), int(_LAST * len(run))), 0
        for limit in (wanted, last):
            far = np.zeros(len(run) // k + 1)
            followed = kernels.followed(run, k, near, limit, far)
            turns = far[: max(wanted, followed // 2) // k]
            if followed < wanted or turns.max() > 2 * turns[0] + _DRIFT * near:
                # most are not followed for long; those that drift take their time
                tries += followed >= wanted
                break
        else:
            return int(k), followed
    return None


def _returns(distance: Any, size: float) -> NDArray[np.int64]:
    """Return the steps at which a run is nearest to its end, after having been away from it."""
    away = distance > _AWAY * size
    if not away.any():
        return np.empty(0, dtype=np.int64)
    left = int(away.argmax())
    inner = distance[left + 1 : -1]
    nearest = (inner <= distance[left:-2]) & (inner < distance[left + 2 :]) & (inner <= _BACK * size)
    return np.flatnonzero(nearest) + left + 1
