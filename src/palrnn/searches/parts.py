"""What a candidate learns from and what it is judged by: both from the part of the data to train on.

The last fifth of the longest trial, at most 9,000 rows, is the *validation stretch*: no candidate is trained
on it. The held-out part of the data set is not here at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from palrnn.data import Dataset, Standardizer
from palrnn.data.source import embedded
from palrnn.engine.checks import Floats

#: The part of the longest trial that judges, the most rows of it that are of use, and the fewest.
FRACTION, MOST_ROWS, LEAST_ROWS = 0.2, 9000, 40


@dataclass(frozen=True, eq=False)
class Parts:
    """The series as a candidate sees them.

    ``fit`` are the trials that it learns from and ``validation (T, lags N)`` the stretch that judges, both
    standardised, past values among their columns; ``whole`` are the trials with that stretch, from which the
    winner learns in the end, and ``seen`` all of their rows, for the region of the data.
    ``reference (T, N)`` is the same stretch raw and without the past, and ``longest`` the whole raw trial
    that it is the end of. Where something drives the system, ``fit_inputs`` and ``validation_inputs (T, K)``
    are the inputs of the same rows, standardised, and ``whole_inputs`` those of the trials.
    """

    fit: list[Floats]
    whole: list[Floats]
    validation: Floats
    seen: Floats
    reference: Floats
    longest: Floats
    standardizer: Standardizer
    fit_inputs: list[Floats] | None = None
    validation_inputs: Floats | None = None
    whole_inputs: list[Floats] | None = None


def raw_training(dataset: Dataset) -> list[Floats]:
    """Return the trials to train on in raw units."""
    return [trial[: len(part)] for trial, part in zip(dataset.trials, dataset.training, strict=False)]


def training_inputs(dataset: Dataset) -> list[Floats] | None:
    """Return the standardised inputs of the trials to train on, None where nothing drives them."""
    return None if dataset.inputs is None else dataset.inputs.training


def validation_rows(trials: Sequence[Floats]) -> tuple[int, int]:
    """Return which trial ends with the validation stretch, and how many rows that has."""
    place = int(np.argmax([len(trial) for trial in trials]))
    rows = min(MOST_ROWS, round(FRACTION * len(trials[place])))
    if rows < LEAST_ROWS and len(trials) > 1:
        rows = len(trials[place])  # short trials: a whole one
    if rows < LEAST_ROWS:
        least = round(LEAST_ROWS / FRACTION)
        raise ValueError(
            f"x must leave {least} rows to train on and to judge candidates by, got {len(trials[place])}: "
            "give a longer series or a smaller test_fraction"
        )
    return place, rows


def parts(
    trials: Sequence[Floats], lags: int = 1, delay: int = 1, inputs: Sequence[Floats] | None = None
) -> Parts:
    """Return the parts of raw ``trials``, each ``(T_k, N)``, with their past beside them.

    ``inputs`` are those of each trial, ``(T_k, K)``, standardised already.
    """
    place, rows = validation_rows(trials)
    embeddings = [embedded(trial, lags, delay) for trial in trials]
    # as `Dataset` does, to the last bit
    scale = Standardizer.fit(np.concatenate(embeddings))
    series = [scale.transform(trial) for trial in embeddings]
    judge = series[place]
    longest = trials[place]

    def to_fit(each: Sequence[Floats]) -> list[Floats]:
        end = max(0, len(judge) - rows)
        kept = [*each[:place], each[place][:end], *each[place + 1 :]]
        return [trial for trial in kept if len(trial) > 1]

    found = Parts(
        to_fit(series),
        [trial for trial in series if len(trial) > 1],
        judge[-rows:],
        np.concatenate(series),
        longest[-rows:][-len(judge) :],
        longest,
        scale,
    )
    if inputs is None:
        return found
    # the rows that have become past are gone from the inputs, too
    drives = [drive[(lags - 1) * delay :] for drive in inputs]
    kept = [drive for drive in drives if len(drive) > 1]
    return replace(
        found, fit_inputs=to_fit(drives), validation_inputs=drives[place][-rows:], whole_inputs=kept
    )
