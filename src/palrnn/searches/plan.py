"""Successive halving: how many candidates are trained for how long, from one number of updates.

Rungs are synchronous (Jamieson and Talwalkar, 2016): all candidates of a rung are judged before any goes on,
so that who goes on does not depend on which worker was quicker. Of each rung a third goes on and is trained
until it has three times as many updates:

    rung      1    2    3    4
    models    n    n/3  n/9  n/27       until three or fewer are left
    updates   u    3u   9u   27u        of each, in all

At the end the winner, and the usual settings beside it, are trained for as long as the last rung took, on all
rows to train on (`ending`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from palrnn.engine.checks import as_int

#: Of the candidates of a rung, one in so many goes on, and has so many times the updates after the next.
FACTOR = 3
#: The trainings at the end: of the winner, and of its rival.
ENDS = 2
# few candidates that are trained for long, or many for a short time: both grow alike with the budget
_PER_ROOT, _FEWEST, _MOST = 45.0, 4, 1000


class Rung(NamedTuple):
    """A rung: how many candidates are in it, for how many updates each is trained, and the sum until then."""

    candidates: int
    updates: int
    total: int


def spent_on(plan: list[Rung]) -> int:
    """Return the updates that a plan takes, the end of the winner and of its rival among them."""
    return sum(rung.candidates * rung.updates for rung in plan) + ENDS * plan[-1].updates


def rungs(updates: int, candidates: int | None = None) -> list[Rung]:
    """Return the rungs that together take at most ``updates`` updates, with ``candidates`` in the first.

    The ends of the winner and of its rival, as many updates as the last rung has, are among them.
    """
    updates = as_int(updates, "updates", least=1)
    if candidates is None:
        candidates = min(_MOST, max(_FEWEST, round(math.sqrt(updates) / _PER_ROOT)))
    counts = [as_int(candidates, "candidates", least=2, most=100_000)]
    while counts[-1] > FACTOR:
        counts.append(max(2, counts[-1] // FACTOR))
    totals = [FACTOR**k for k in range(len(counts))]
    more = [b - a for a, b in zip([0, *totals], totals, strict=False)]
    needed = sum(count * each for count, each in zip(counts, more, strict=True)) + ENDS * more[-1]
    unit = updates // needed
    if unit < 1:
        raise ValueError(
            f"updates must be at least {needed} for {counts[0]} candidates, got {updates}: "
            "give more updates, more minutes or fewer candidates"
        )
    return [Rung(c, unit * m, unit * t) for c, m, t in zip(counts, more, totals, strict=True)]
