"""What is refused before a search begins, rather than after its whole budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from palrnn.data import Dataset
from palrnn.forcing import check_training
from palrnn.searches.parts import parts
from palrnn.searches.space import Candidate

# rows that a score card takes at least
_LEAST_HELD = 40


def most_past(dataset: Dataset, trials: list[Any]) -> int:
    """Return how many rows the past may take: of each trial a part, and enough is held out to judge by."""
    held = min(map(len, dataset.heldout_trials))
    return max(0, min(max(map(len, trials)) // 4, min(map(len, trials)) // 2, held - _LEAST_HELD))


def check_candidates(
    drawn: list[Candidate], trials: list[Any], drives: list[Any] | None, dataset: Dataset
) -> None:
    """Refuse what no candidate could be trained with or judged by in the end, before anything is written."""
    seen: set[tuple[int, int]] = set()
    for candidate in drawn:
        config = candidate.config(1)
        columns = trials[0].shape[1] * candidate.lags
        units = config.fitted(columns).latent_dim
        if columns > units:
            raise ValueError(f"latent_dim must be at least {columns}, the number of columns, got {units}")
        if (candidate.lags, candidate.delay) not in seen:
            seen.add((candidate.lags, candidate.delay))
            _check_held_out(candidate, dataset)
            data = parts(trials, candidate.lags, candidate.delay, drives)
            _check_judges(data.reference)
            if not data.fit:
                raise ValueError("x must leave two rows to train on beside those that judge candidates")
            length = min(config.sequence_length, *map(len, data.fit), config.sequence_length)
            config = candidate.config(1, sequence_length=max(2, length))
            check_training(data.fit, config, inputs=data.fit_inputs)


def _check_held_out(candidate: Candidate, dataset: Dataset) -> None:
    held = min(map(len, dataset.heldout_trials))
    left = held - (candidate.lags - 1) * candidate.delay
    if dataset.true_system is None and left < _LEAST_HELD:
        raise ValueError(
            f"lags = {candidate.lags} with delay = {candidate.delay} must leave {_LEAST_HELD} of the {held} "
            f"held-out rows to judge by, leaves {max(0, left)}: give a larger test_fraction or fewer lags"
        )


def _check_judges(reference: Any) -> None:
    still = np.flatnonzero(np.nanmin(reference, axis=0) == np.nanmax(reference, axis=0))
    if still.size:
        raise ValueError(
            "x must vary in every column in the rows that judge candidates, column "
            f"{still[0]} is constant there: leave it out"
        )
