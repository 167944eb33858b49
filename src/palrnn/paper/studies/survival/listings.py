"""Who lives, and what tells: rank statistics of models that still move against models that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palrnn.paper.claim import TRUE, Listing
from palrnn.paper.statistics import Interval, bootstrap, superiority

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

MODEL = ["process_std", "observation_std", "tau", "seed"]
_OUTCOMES = {"rests": "rest", "cycle": "a cycle", "diverges": "divergence", "leaves": "another region"}


def fates_listing(
    survival: pd.DataFrame, steps: int, expected: int, groups: Mapping[str, pd.DataFrame] | None = None
) -> Listing:
    """Return how many models still move, by forcing interval, and D_stsp over their starts.

    ``groups`` are more models to be told of together, by the words for them.
    """
    rows = []
    some = {words: models.merge(survival, on=MODEL) for words, models in (groups or {}).items()}
    parts = [(words, part) for words, part in some.items() if len(part)]
    for tau, part in [("all", survival), *parts, *survival.groupby("tau")]:
        alive = part["moves_on"] == part["starts"]
        share = bootstrap(alive.to_numpy(float), lambda values: values.mean(axis=1))
        runs = [f"{part[name].sum() / part['starts'].sum():.0%}" for name in ("moves_on", *_OUTCOMES)]
        spread = part["dstsp_high"] - part["dstsp_low"]
        scores = [f"{part['dstsp_median'].median():.2f}", f"{spread.median():.2f}"]
        rows.append(
            [
                f"{tau}",
                f"{len(part)}",
                f"{share.value:.0%} [{share.low:.0%}, {share.high:.0%}]",
                *runs,
                *scores,
            ]
        )
    columns = ["tau", "models", "alive from all starts", "runs that move on"]
    columns += [f"that end in {words}" for words in _OUTCOMES.values()]
    columns += ["D_stsp, median over starts", "highest less lowest"]
    so_far = "" if len(survival) == expected else f" ({len(survival)} of {expected} models so far)"
    words = (
        f"Free runs of {steps:,} steps from {survival['starts'].iloc[0]} starts of each model{so_far}; "
        "D_stsp of the paper's length, from each of them, medians over models. Intervals are over models."
    )
    return Listing(TRUE, "Which models still move", words, columns, rows)


def telling_listing(survival: pd.DataFrame, measured: pd.DataFrame, names: dict[str, str]) -> Listing:
    """Return how well each column of ``measured`` tells living models from others, at any and equal settings.

    ``names`` are its columns, with the words for them.
    """
    both = survival.merge(measured, on=MODEL)
    alive = (both["moves_on"] == both["starts"]).to_numpy()
    strata = both.groupby(MODEL[:3]).ngroup().to_numpy()
    rows = []
    for column, words in names.items():
        kept = both[column].notna().to_numpy()
        values, mark = both[column].to_numpy(float)[kept], alive[kept]
        plain, equal = superiority(values, mark), superiority(values, mark, strata[kept])
        rows.append([words, f"{kept.sum()}", f"{alive[kept].sum()}", _odds(plain), _odds(equal)])
    columns = ["measured", "models", "alive", "any two models", "of equal noise and tau"]
    text = (
        "The probability that a model which lives has the larger value of the two, if one lives and one "
        "does not: 0.5 tells nothing. In the last column both have the same noise and forcing interval."
    )
    return Listing(TRUE, "Does anything tell the living from the dying", text, columns, rows)


def _odds(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
