"""The parts of a dataset: what to train on, what to judge by, each embedded in its own past."""

from __future__ import annotations

import numpy as np

from palrnn.data.embedding import delay_embed
from palrnn.data.source import Source
from palrnn.data.split import train_test_split
from palrnn.engine.checks import Floats


def split_source(source: Source, test_fraction: float) -> tuple[list[Floats], Floats, list[Floats]]:
    """Return the trials to train on, the one to judge by, and the former without observation noise."""
    if len(source.trials) > 1:
        *seen, held = source.trials
        return seen, held, seen
    seen_part, held = train_test_split(source.trials[0], test_fraction)
    if source.clean is None:
        return [seen_part], held, [seen_part]
    return [seen_part], held, [source.clean[: len(seen_part)]]


def embedded(part: Floats, lags: int, delay: int) -> Floats:
    """Return ``part`` with its past beside it; refuse one that is too short to have a past."""
    lost = (lags - 1) * delay
    if len(part) < lost + 2:
        raise ValueError(
            f"lags = {lags} with delay = {delay} must leave two steps of every part, got {len(part)} steps "
            f"of which {lost} become the past: give fewer lags, a shorter delay or more data"
        )
    return delay_embed(part, lags, delay)


def first_gap(trials: list[Floats]) -> str | None:
    """Return where the first missing value is, in words; None if there is none."""
    for k, trial in enumerate(trials):
        missing = np.argwhere(np.isnan(trial))
        if len(missing):
            return f"trial {k}, column x{missing[0][1] + 1}, row {missing[0][0] + 1}"
    return None
