"""What a candidate learns from and what it is judged by: both from the part of the data to train on.

A fifth of the longest trial, at most 9,000 rows, are the *validation rows*: no candidate is trained on them.
They are the ends of four equal blocks, so that a candidate is neither taught nor judged by one time alone:
what a series does only late, such as its first visit to a second lobe, is in both. Free runs start there, and
forecasts are judged there; where the runs go is compared with all rows (`Parts.scored_by_all_rows`). A short
series has fewer blocks, and so has one that is slow beside its length, or whose past reaches far; one that is
driven has one, since inputs have to follow each other. The held-out part of the data set is not here at all.

      learned from         judges
    |----------------------|xxxxx|----------------------|xxxxx|  ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from palrnn.data import Dataset, Standardizer
from palrnn.data.source import embedded
from palrnn.engine.checks import Floats
from palrnn.invariants.floors import has_floors, varies
from palrnn.invariants.state_space import delay_for

#: The part of the longest trial that judges, the most rows of it that are of use, and the fewest.
FRACTION, MOST_ROWS, LEAST_ROWS = 0.2, 9000, 40
#: The most rows that judge where all do.
MOST_JUDGING = 30_000
#: The most blocks; of several, the fewest rows that judge in each, and how many delays they are at least.
BLOCKS, BLOCK_ROWS, BLOCK_DELAYS = 4, 250, 10
# the part of a block that the past of its first rows may take, which is lost to learning
_MOST_PAST = 0.4
# gaps between stretches are longer than a forecast that is judged
_LEAST_GAP = 20


@dataclass(frozen=True, eq=False)
class Parts:
    """The series as a candidate sees them.

    ``fit`` are the trials that it learns from and ``validation (T, lags N)`` the rows that judge, both
    standardised, past values among their columns, with gaps (NaN) between the stretches of ``validation``;
    ``whole`` are the trials with those rows, from which the winner learns in the end, and ``seen`` all of
    their rows, for the region of the data. ``reference (T, N)`` are the rows that judge, raw and without the
    past, and ``longest`` the whole raw trial that they are of. Where something drives the system,
    ``fit_inputs`` and ``validation_inputs (T, K)`` are the inputs of the same rows, standardised, and
    ``whole_inputs`` those of the trials. ``reference`` is ``joined`` of stretches, or one of them.
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
    joined: bool = True
    floor_rows: int | None = None

    @property
    def floor_length(self) -> int:
        """How long the stretches of floors are: ``floor_rows``, or as ``reference``; half of all at most."""
        return min(self.floor_rows or len(self.reference), len(self.longest) // 2)

    @property
    def delay(self) -> int | None:
        """The delay of the space in which a single column is scored."""
        delay = delay_for(self.longest)
        return None if delay is None else min(delay, (self.floor_length - 1) // 3)

    @property
    def floor_source(self) -> Floats:
        """The series of which floors are: with the gaps of ``reference``, where it is joined."""
        if not self.joined:
            return self.longest
        gaps = np.isnan(self.reference[: self.floor_length]).all(axis=1)
        return np.where(np.resize(gaps, len(self.longest))[:, None], np.nan, self.longest)

    def scored_by_all_rows(self) -> Parts:
        """Return the same with the free run scored by all rows of the longest trial, the last of very many.

        Where a run goes cannot be learned by heart, and a fifth of the rows is too few to tell good models
        apart: of 2,700 rows of a flow, two stretches of the truth differ by 1.5 to 4.5 nats. Starts and
        errors ahead stay those of the validation rows. Of a driven system, inputs belong to their rows; of
        one that gaps leave too little of, such as a sensor that was off in one half, there is no floor.
        """
        found = replace(self, reference=self.longest[-MOST_JUDGING:], joined=False)
        if self.validation_inputs is not None or not varies(found.reference, found.delay):
            return self
        return found if has_floors(self.longest, found.floor_length, found.delay) else self

    def of_all_rows(self) -> Parts:
        """Return the same with all rows of the longest trial as those that judge, the last of very many.

        Floors stay those of the validation rows: of the whole there is no second one.
        """
        place = int(np.argmax([len(trial) for trial in self.whole]))
        rows = slice(-min(MOST_JUDGING, len(self.whole[place])), None)
        along = None if self.whole_inputs is None else self.whole_inputs[place][rows]
        reference = self.longest[-len(self.whole[place]) :][rows]
        return replace(
            self,
            validation=self.whole[place][rows],
            reference=reference,
            validation_inputs=along,
            joined=False,
            floor_rows=len(self.reference),
        )


def raw_training(dataset: Dataset) -> list[Floats]:
    """Return the trials to train on in raw units."""
    return [trial[: len(part)] for trial, part in zip(dataset.trials, dataset.training, strict=False)]


def training_inputs(dataset: Dataset) -> list[Floats] | None:
    """Return the standardised inputs of the trials to train on, None where nothing drives them."""
    return None if dataset.inputs is None else dataset.inputs.training


def validation_rows(trials: Sequence[Floats]) -> tuple[int, int]:
    """Return which trial has the validation rows, and how many they are."""
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


def stretches(length: int, rows: int, blocks: int) -> list[slice]:
    """Return where ``rows`` of a series of ``length`` judge: at the end of each of equal ``blocks``."""
    ends = np.linspace(0, length, blocks + 1).round().astype(int)[1:]
    return [slice(max(0, int(end) - rows // blocks), int(end)) for end in ends]


def blocks_for(length: int, rows: int, past: int, slow: int) -> int:
    """Return how many blocks a series of ``length`` has, of which ``rows`` judge.

    Each row has ``past`` rows beside it, and ``slow`` are those between the coordinates of a delay space.
    """
    most = min(BLOCKS, rows // BLOCK_ROWS, rows // (BLOCK_DELAYS * slow))
    return max(1, min(most, int(_MOST_PAST * length / max(1, past))))


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
    judge, longest, past = series[place], trials[place], (lags - 1) * delay
    slow = delay_for(longest) or 1
    blocks = 1 if inputs is not None else blocks_for(len(longest), rows, past, slow)
    # the same rows, whatever past stands beside them; those that have none are no rows of the embedding
    judging = [
        slice(max(0, each.start - past), each.stop - past) for each in stretches(len(longest), rows, blocks)
    ]
    # a row after a stretch has it among its past values for as long as they reach
    begins = [0, *(each.stop + past for each in judging[:-1])]
    learning = [slice(begin, each.start) for begin, each in zip(begins, judging, strict=True)]
    gap = max(_LEAST_GAP, 2 * slow)

    def to_fit(each: Sequence[Floats]) -> list[Floats]:
        kept = [*each[:place], *(each[place][rows] for rows in learning), *each[place + 1 :]]
        return [trial for trial in kept if len(trial) > 1]

    found = Parts(
        to_fit(series),
        [trial for trial in series if len(trial) > 1],
        _joined([judge[rows] for rows in judging], gap),
        np.concatenate(series),
        _joined([longest[past:][rows] for rows in judging], gap),
        longest,
        scale,
    )
    if inputs is None:
        return found
    # the rows that have become past are gone from the inputs, too
    drives = [drive[past:] for drive in inputs]
    kept = [drive for drive in drives if len(drive) > 1]
    return replace(
        found, fit_inputs=to_fit(drives), validation_inputs=drives[place][judging[0]], whole_inputs=kept
    )


def _joined(pieces: list[Floats], gap: int) -> Floats:
    """Return all ``pieces`` one after the other, with ``gap`` rows of NaN between them."""
    missing = np.full((gap, pieces[0].shape[1]), np.nan)
    return np.concatenate([pieces[0], *(each for piece in pieces[1:] for each in (missing, piece))])
