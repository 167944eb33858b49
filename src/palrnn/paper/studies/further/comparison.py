"""Which claims that differ under a reading agree with another segment, seed or weighting, and the reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palrnn.paper.claim import AGREES, SHOWN, Claim, Listing
from palrnn.paper.studies.readings.comparison import agreeing, claim_cell, claims_by_reading, question

if TYPE_CHECKING:
    import pandas as pd


def further_listing(
    reading: str, readings: pd.DataFrame, further: pd.DataFrame, models: int, resamples: int
) -> Listing:
    """Return the claims that differ under ``reading``, with a column for each way of ``further``.

    ``models`` is how many a complete way has: others have numbers and no verdicts.
    """
    import pandas as pd

    own = readings[readings["reading"] == reading]
    ways = further[further["reading"] == reading].drop(columns="reading").rename(columns={"way": "reading"})
    stacked = pd.concat([own, ways], ignore_index=True)
    claims = claims_by_reading(stacked, resamples)
    sizes = stacked.groupby("reading", sort=False).size()
    complete = {name for name in claims if sizes[name] == models}
    found = {name: {question(claim): claim for claim in some} for name, some in claims.items()}
    first = found[reading]
    differing = [asked for asked, claim in first.items() if claim.verdict != AGREES]
    rows = [["models", "", *(f"{sizes[name]}" for name in claims)]]
    for asked in differing:
        cells = [claim_cell(found[name].get(asked), name in complete) for name in claims]
        rows.append([asked, first[asked].paper, *cells])
    moved = {name: _moved(first, found[name]) for name in claims if name in complete}
    for words, which in (("now agree", 0), ("differ only here", 1)):
        cells = ["; ".join(moved[name][which]) if name in moved else "" for name in claims]
        rows.append([words, "", *cells])
    sums = [f"{agreeing(claims[name])} of {len(claims[name])}" if name in complete else "" for name in claims]
    rows.append(["agree", "", *sums])
    words = (
        f"The claims that differ under the reading `{reading}`, once more with other segments of the test "
        "series, other seeds of the filter and other weightings of the ITF Fisher, one at a time. The list "
        "was written down before any of it was computed. The last rows say which claims each of them moves. "
        "A column that lacks models has numbers, of those that are there, and no verdicts."
    )
    heads = ["as it is" if name == reading else name for name in claims]
    return Listing(SHOWN, f"Further readings: {reading}", words, ["claim", "paper", *heads], rows)


def _moved(before: dict[str, Claim], after: dict[str, Claim]) -> tuple[list[str], list[str]]:
    """Return the claims that agree after and not before, and those that agree before and not after."""
    now = [asked for asked, claim in after.items() if claim.verdict == AGREES]
    then = [asked for asked, claim in before.items() if claim.verdict == AGREES]
    return [asked for asked in now if asked not in then], [asked for asked in then if asked not in now]
