"""A claim of the paper beside our number: agrees, differs, or cannot be compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from palrnn.experiments.statistics import Interval

AGREES, DIFFERS, INCOMPARABLE = "agrees", "differs", "cannot be compared"


@dataclass(frozen=True)
class Claim:
    """One statement or number: where the paper makes it, what it says, what we found, and the verdict.

    ``rule`` says in words what decided the verdict, so that a reader may disagree with it. ``ours`` is text;
    ``value``, ``low`` and ``high`` hold the number behind it with its 95 % interval, where there is one.
    """

    where: str
    claim: str
    paper: str
    ours: str
    verdict: str
    rule: str
    value: float | None = None
    low: float | None = None
    high: float | None = None

    def entry(self) -> dict[str, Any]:
        """The claim as plain values."""
        return asdict(self)


def judged(
    where: str, claim: str, paper: str, ours: str | Interval, agrees: bool | None, rule: str, note: str = ""
) -> Claim:
    """Return a claim with its verdict; ``agrees`` of None means that the two cannot be compared."""
    verdict = INCOMPARABLE if agrees is None else AGREES if agrees else DIFFERS
    words = str(ours) + (f"; {note}" if note else "")
    if isinstance(ours, Interval):
        return Claim(where, claim, paper, words, verdict, rule, *ours)
    return Claim(where, claim, paper, words, verdict, rule)
