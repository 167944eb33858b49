"""A claim of the paper beside our number: agrees, differs, or cannot be compared; and findings of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from palrnn.paper.statistics import Interval

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

    @classmethod
    def compare(
        cls,
        where: str,
        claim: str,
        paper: str,
        ours: str | Interval,
        agrees: bool | None,
        rule: str,
        note: str = "",
    ) -> Self:
        """Return a claim with its verdict; ``agrees`` of None means that the two cannot be compared."""
        verdict = INCOMPARABLE if agrees is None else AGREES if agrees else DIFFERS
        words = f"{ours}; {note}" if note else str(ours)
        return cls(where, claim, paper, words, verdict, rule, *(ours if isinstance(ours, Interval) else ()))


@dataclass(frozen=True)
class Rival:
    """The claims of a study under another reading of the paper, which was chosen after looking."""

    reading: str
    study: str
    claims: list[Claim]


@dataclass(frozen=True)
class Listing:
    """A table of the fidelity page: its heading, what to know about it, a row per question.

    Listings with the same ``part`` stand together; parts come in the order `TRUE`, `SHOWN`, `OPEN`.
    """

    part: str
    title: str
    words: str
    columns: list[str]
    rows: list[list[str]]


#: The parts of the page that hold listings: on the models, on the paper's estimator, on open questions.
TRUE, SHOWN = "What is true of the models", "What the paper's estimator shows, reading by reading"
OPEN = "What the paper leaves open"


@dataclass(frozen=True)
class Finding:
    """One of our own findings: what was asked and what came out, with the numbers behind it."""

    about: str
    found: str
    numbers: dict[str, Any]
