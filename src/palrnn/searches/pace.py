"""How many updates fit into some minutes: measured once, at the start, and kept with the search."""

from __future__ import annotations

import math
import time

from palrnn.engine.progress import quiet
from palrnn.forcing import TrainResult, train
from palrnn.searches.judge import judge_model
from palrnn.searches.parts import Parts
from palrnn.searches.plan import ENDS, rungs, spent_on
from palrnn.searches.space import Candidate
from palrnn.searches.work import LONG_STEPS, SHORT_STEPS

# updates before the clock starts, the fewest that it measures, and the seconds that are enough
_WARM, _FIRST, _ENOUGH = 5, 25, 1.0
# candidates are a little larger than the usual one on average, and survivors more so; long runs that judge
# the last rung and measure it on the way take so many times the short ones
_LARGER, _ROUNDS = 1.4, 20
_LEAST = 100


def affordable_updates(
    minutes: float, candidate: Candidate, data: Parts, workers: int, candidates: int | None
) -> int:
    """Return the updates that ``workers`` can do in ``minutes``, judgements included, about."""
    rate, judging = pace(candidate, data)
    seconds, workers = 60.0 * minutes, max(1, workers)
    updates = max(_LEAST, round(seconds * rate * workers / _LARGER))
    for _ in range(_ROUNDS):
        plan = rungs(max(updates, _LEAST), candidates)
        # how often each worker has a turn; those that end are judged twice
        turns, ends = [math.ceil(rung.candidates / workers) for rung in plan], math.ceil(ENDS / workers)
        last = (turns[-1] + 2 * ends) * LONG_STEPS / SHORT_STEPS
        spent = judging * (sum(turns[:-1]) + last)
        alone = sum(turn * rung.updates for turn, rung in zip(turns, plan, strict=True))
        alone += ends * plan[-1].updates
        parallel = spent_on(plan) / alone
        updates = max(_LEAST, round(max(0.1 * seconds, seconds - spent) * rate * parallel / _LARGER))
    return updates


def pace(candidate: Candidate, data: Parts) -> tuple[float, float]:
    """Return the updates per second of a candidate on one core, and the seconds that a judgement takes."""
    longest = candidate.training.get("sequence_length", 200)
    length = max(2, min(longest, *map(len, data.fit)))

    def training(updates: int) -> TrainResult:
        config = candidate.config(updates, sequence_length=length)
        return train(data.fit, config, inputs=data.fit_inputs, progress=quiet)

    def spent(updates: int) -> float:
        begun = time.perf_counter()
        training(updates)
        return time.perf_counter() - begun

    spent(_WARM)
    updates = _FIRST
    while (seconds := spent(updates)) < _ENOUGH:
        updates *= 2
    result = training(_FIRST)
    judge_model(result.model, data.scored_by_all_rows(), long_steps=1000)
    begun = time.perf_counter()
    judge_model(result.model, data.scored_by_all_rows(), long_steps=SHORT_STEPS)
    return updates / seconds, time.perf_counter() - begun
