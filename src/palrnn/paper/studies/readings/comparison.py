"""Which reading reproduces which number of the paper: its claims, once for each reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from palrnn.paper.claim import AGREES, DIFFERS, INCOMPARABLE, SHOWN, Claim, Listing
from palrnn.paper.studies.gap.claims import fixed_q_rows, gap_claims

if TYPE_CHECKING:
    import pandas as pd

MODEL = ["process_std", "observation_std", "tau", "seed"]
_MARKS = {AGREES: "agrees", DIFFERS: "**differs**", INCOMPARABLE: "not comparable"}


def claims_by_reading(readings: pd.DataFrame, resamples: int) -> dict[str, list[Claim]]:
    """Return the claims about the curvature gap, compared once with the models of each reading."""
    import pandas as pd

    found = {}
    for name, part in readings.groupby("reading", sort=False):
        # in the order of the curvature study, on which the draws of a bootstrap depend
        models = part.rename(columns={"reading": "variant"}).sort_values(MODEL)
        fixed_q = pd.DataFrame(fixed_q_rows(models, resamples))
        found[str(name)] = gap_claims(models, fixed_q, resamples)
    return found


def best_reading(claims: Mapping[str, list[Claim]], complete: Collection[str]) -> str | None:
    """Return the complete reading under which most claims agree, the first of equals; None without any."""
    return max(
        (name for name in claims if name in complete), key=lambda name: agreeing(claims[name]), default=None
    )


def agreeing(claims: list[Claim]) -> int:
    """The number of claims that agree."""
    return sum(claim.verdict == AGREES for claim in claims)


def question(claim: Claim) -> str:
    """What a claim is about, with the process noise that it is made for, if any."""
    where = claim.where.partition(", ")[2]
    return f"{claim.claim} ({where})" if where else claim.claim


def claim_cell(claim: Claim | None, complete: bool) -> str:
    """Our number and, of a complete reading, the verdict; nothing for a claim that is not there."""
    if claim is None:
        return ""
    return f"{claim.ours}: {_MARKS[claim.verdict]}" if complete else claim.ours


def complete_readings(readings: pd.DataFrame, models: Mapping[str, int]) -> set[str]:
    """The readings that are all there; ``models`` is how many models each has when complete."""
    return {str(name) for name, part in readings.groupby("reading") if len(part) == models[str(name)]}


def readings_listing(
    readings: pd.DataFrame, models: Mapping[str, int], claims: Mapping[str, list[Claim]]
) -> Listing:
    """Return a table with a column for each reading; ``models`` is how many models each has when complete."""
    there, complete = readings.groupby("reading", sort=False).size(), complete_readings(readings, models)
    best, own = best_reading(claims, complete), next(iter(claims))
    heads = []
    for name in claims:
        note = " (the first)" if name == own else ""
        note += " (best, chosen after looking)" if name == best else ""
        heads.append(f"{name}{note}")
    counts = [
        f"{there[name]}" if name in complete else f"{there[name]} of {models[name]} so far" for name in claims
    ]
    rows = [["models", "180", *counts]]
    by_question = [{question(claim): claim for claim in some} for some in claims.values()]
    for asked, first in by_question[0].items():
        # a reading that is not complete may lack a level of process noise
        same = zip(claims, (questions.get(asked) for questions in by_question), strict=True)
        cells = [claim_cell(claim, name in complete) for name, claim in same]
        rows.append([asked, first.paper, *cells])
    sums = {name: f"{agreeing(some)} of {len(some)}" for name, some in claims.items()}
    rows.append(["agree", "", *(words if name in complete else "" for name, words in sums.items())])
    words = (
        "All columns use the paper's own estimator, eight sampled states under its own filter. A reading is "
        "named by its particles, the forcing intervals of its models and what a level of process noise means "
        "for one step. All were written down before any was computed, except the first, which is that of "
        "the study below. Rules are those of the tables below. A reading that lacks models has numbers and "
        "no verdicts: with few models most intervals are wide enough to hold the paper's value."
    )
    if best is not None:
        words += f" Of the complete ones `{best}` agrees most often; that is said after looking."
    return Listing(SHOWN, "The readings of the text", words, ["claim", "paper", *heads], rows)
