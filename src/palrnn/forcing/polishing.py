"""Polishing: a trained model whose long runs end is trained on until what they end on attracts no more.

A surrogate is affine along a code sequence, so where its run rests, or which cycle it follows, is known
exactly (`palrnn.invariants.sinks`), and so is how fast it attracts there. Each round

1. finds the stable fixed points and cycles on which the long runs of twenty starts end, and the stable fixed
   points in regions that runs visit;
2. makes some more updates of teacher forcing, as in training, and after every few of them lowers the penalty
   max(0, margin - growth)^2 at each of these places, found again for the parameters of then, by the shortest
   step that makes it zero to first order, delta theta = (margin - growth) g / |g|^2 with g = d growth /
   d theta, but by no more than the updates in between can have moved theta;
3. judges: do all long runs live, and where do they go (D_stsp against the part to train on)?

The first model that lives and whose D_stsp is not worse than before, by more than runs of one model differ
by, is the result. If none comes, the model stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer, noise_level
from palrnn.engine.checks import Floats, as_float, as_instance, as_int
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, listening
from palrnn.engine.text import counted
from palrnn.forcing.batches import BLOCK, Batches, training_trials
from palrnn.forcing.config import TrainConfig
from palrnn.forcing.state import TrainState
from palrnn.forcing.updating import TrainingDivergedError, advanced
from palrnn.invariants.floors import Floor, dstsp_floor, has_floors, varies
from palrnn.invariants.over_starts import scores_over_starts
from palrnn.invariants.repetition import Repetition
from palrnn.invariants.sinks import (
    Sink,
    growth_gradient,
    resting_places,
    same_place,
    sink_at,
    sinks_of,
)
from palrnn.invariants.state_space import delay_for
from palrnn.invariants.verdict import ended_fates, excess_over
from palrnn.invariants.viability import Viability, spread_rows, viability
from palrnn.model import PALRNN, Surrogate, drift_of
from palrnn.model.engine import advance
from palrnn.model.surrogate import with_training_vector

_LENGTH, _DISCARD, _PAIRS, _SEEN_NOISE, _LEAST = 9000, 1000, 10, 0.005, 40
# D_stsp of a run that diverges, so that medians and quartiles are numbers
_FAR = 20.0
# starts of the long runs that judge, steps in which regions are looked for, and places that are pushed
_STARTS, _VISITED, _MOST_PLACES = 20, 2000, 8


@dataclass(frozen=True, eq=False)
class Life:
    """What long runs and scores say of a model: ``ended`` of the runs end where the data do not.

    ``dstsp (S,)`` is of runs against the part to train on, with noise as there.
    """

    viability: Viability
    dstsp: Floats
    ended: int

    @property
    def score(self) -> float:
        """The median of D_stsp over starts."""
        return float(np.median(self.dstsp))

    @property
    def spread(self) -> float:
        """By what D_stsp differs between starts: the interquartile range."""
        low, high = np.quantile(self.dstsp, [0.25, 0.75])
        return float(high - low)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"alive": self.viability.alive, "ended": self.ended, "dstsp": self.dstsp.tolist()}


@dataclass(frozen=True, eq=False)
class Round:
    """One round: ``updates`` made so far, the places that were pushed, and what came out."""

    updates: int
    places: tuple[str, ...]
    life: Life


@dataclass(frozen=True, eq=False)
class Polished:
    """The ``model`` after polishing, or as it was if that did not help, and what was done in ``rounds``."""

    model: Any = field(repr=False)
    changed: bool
    before: Life = field(repr=False)
    rounds: tuple[Round, ...] = field(repr=False)
    words: str

    @property
    def after(self) -> Life:
        """What is known of ``model``."""
        return self.rounds[-1].life if self.changed else self.before

    @property
    def updates(self) -> int:
        """The updates that were made, whatever became of them."""
        return self.rounds[-1].updates if self.rounds else 0

    def __repr__(self) -> str:
        return f"Polished({self.words})"


def polish(
    model: Surrogate | PALRNN,
    x: ArrayLike | Sequence[ArrayLike],
    config: TrainConfig,
    *,
    rounds: int = 16,
    updates: int = 250,
    every: int = 10,
    rate: float = 1e-4,
    margin: float | None = 2e-3,
    steps: int = 100_000,
    progress: Progress | None = None,
) -> Polished:
    """Train ``model`` on until its long runs live, if they end at rest or on a cycle where the data do not.

    ``x`` is what it was trained on, standardised: one series ``(T, N)`` or trials; ``config`` says how
    (forcing, batches, input noise, clipping, optimiser, seed). At most ``rounds`` times ``updates`` updates
    are made, at ``rate``; after ``every`` of them the places where runs ended are pushed towards a growth of
    ``margin`` per step, of a cycle across its path. Runs of ``steps`` steps from twenty rows of ``x`` judge,
    and D_stsp of shorter ones. A model that lives is returned as it is, and so is one that does not in the
    end, or scores worse. ``margin=None`` pushes nothing: that is plain training, of which the first model
    that lives is kept. Of a PAL-RNN the drift is polished.
    """
    drift = drift_of(model)
    if drift.input_dim:
        raise ValueError("model must be autonomous: what inputs drive has no fixed points and cycles")
    config = as_instance(config, "config", TrainConfig)
    rounds, updates = as_int(rounds, "rounds", least=1), as_int(updates, "updates", least=1)
    every, rate = as_int(every, "every", least=1, most=BLOCK), as_float(rate, "rate", above=0.0)
    margin = None if margin is None else as_float(margin, "margin")
    trials = training_trials(x, config.sequence_length)
    if trials[0].shape[1] != drift.observed_dim:
        raise ValueError(
            f"x must have the {drift.observed_dim} columns of the model, got {trials[0].shape[1]}"
        )
    pin_blas()
    if not can_judge(trials):
        raise ValueError("x must hold two stretches in which every column varies, to judge models by")
    judge = _Judge(trials, as_int(steps, "steps", least=1000), config.seed)
    before = judge(drift)
    if not before.ended:
        return Polished(model, False, before, (), "the model lives")
    if not any(fate.outcome in ("rests", "cycle") for fate in before.viability.fates):
        return Polished(model, False, before, (), "its runs end neither at rest nor on a cycle")
    sinks = judge.sinks(drift, before)
    how: dict[str, Any] = {"updates": rounds * updates, "learning_rate": rate, "final_learning_rate": rate}
    how |= {"forcing": config.forcing.final, "keep": "last", "evaluate_every": None}
    config = config.changed(**how)
    state, done = TrainState.start(config, drift), list[Round]()
    batches = Batches(trials, config, state.theta.dtype)
    with listening(progress, "polishing") as report:
        for number in range(1, rounds + 1):
            try:
                state = _trained(state, batches, number * updates, every, sinks, margin)
            except TrainingDivergedError as error:
                words = f"training diverged after {error.update:,} more updates; the model is as it was"
                return Polished(model, False, before, tuple(done), words)
            life = judge(state.current)
            done.append(Round(state.done, tuple(map(str, sinks)), life))
            report(state.done, config.updates, {"alive": life.viability.alive, "D_stsp": life.score})
            if not life.ended and life.score <= before.score + min(life.spread, before.spread):
                words = f"after {state.done:,} more updates, away from {_places(sinks)}, it lives"
                polished = replace(model, drift=state.current) if isinstance(model, PALRNN) else state.current
                return Polished(polished, True, before, tuple(done), words)
            found = judge.sinks(state.current, life)
            new = [each for each in found if not any(same_place(each, known) for known in sinks)]
            sinks = [*sinks, *new][-_MOST_PLACES:]
    words = f"{state.done:,} more updates made no model that lives and scores as well; it is as it was"
    return Polished(model, False, before, tuple(done), words)


def can_judge(trials: Sequence[Floats]) -> bool:
    """Return whether models of these trials can be scored: by two stretches of the longest that vary."""
    longest = max(trials, key=len)
    if len(longest) < _LEAST or np.isnan(longest).all(axis=0).any():
        return False
    length = min(_LENGTH, len(longest) // 2)
    reference = longest[:length]
    if not varies(reference, None):
        return False
    delay = delay_for(reference)
    return varies(reference, delay) and has_floors(longest, length, delay)


def _places(sinks: Sequence[Sink]) -> str:
    resting = sum(sink.period == 1 for sink in sinks)
    parts = ((resting, "fixed point"), (len(sinks) - resting, "cycle"))
    return " and ".join(counted(count, thing) for count, thing in parts if count) or "nothing"


def _trained(
    state: TrainState, batches: Batches, end: int, every: int, sinks: list[Sink], margin: float | None
) -> TrainState:
    """Return the state at update ``end``; ``sinks`` are replaced by where they are then."""
    # how far updates by a rate move the parameters, if each moves all of them
    reach = every * state.config.learning_rate * np.sqrt(state.theta.size)
    while state.done < end:
        stop = min(end, (state.done // BLOCK + 1) * BLOCK, state.done + every)
        state = advanced(state, batches, stop)
        if margin is not None:
            state = _pushed(state, sinks, margin, reach)
    return state


def _pushed(state: TrainState, sinks: list[Sink], margin: float, reach: float) -> TrainState:
    """Return the state after a step that makes the growth at each of ``sinks`` the ``margin``."""
    vector = state.theta.astype(np.float64)
    for k, known in enumerate(sinks):
        model = with_training_vector(state.template, vector)
        sink = sink_at(model, known.states[0], known.period)
        if sink is None or not same_place(sink, known):
            continue
        sinks[k] = sink
        if sink.growth < margin:
            gradient = growth_gradient(model, sink)
            move = (margin - sink.growth) / max(float(gradient @ gradient), 1e-300) * gradient
            move *= min(1.0, reach / max(float(np.linalg.norm(move)), 1e-300))
            if np.isfinite(move).all():  # it is not where two largest eigenvalues meet
                vector[: len(move)] += move
    return replace(state, theta=vector.astype(state.theta.dtype))


class _Judge:
    """Long runs, and scores, of models of one series."""

    def __init__(self, trials: list[Floats], steps: int, seed: int) -> None:
        longest = max(trials, key=len)
        length = min(_LENGTH, len(longest) // 2)
        self.steps, self.seed, self.data = steps, seed, longest
        self.reference = longest[:length]
        self.starts = longest[spread_rows(longest, _STARTS)]
        level = noise_level(longest)
        self.noise = level if (level > _SEEN_NOISE * np.nanstd(longest, axis=0)).any() else None
        self.delay = delay_for(self.reference)
        self.floor: Floor = dstsp_floor(longest, length=length, pairs=_PAIRS, delay=self.delay, seed=seed)
        seen = longest.shape[1]
        self.scale = Standardizer(np.zeros(seen), np.ones(seen))

    def __call__(self, drift: Surrogate) -> Life:
        life = viability(drift, self.starts, self.steps, data=self.data)
        scores = scores_over_starts(
            drift,
            self.starts,
            self.reference,
            standardizer=self.scale,
            discard=_DISCARD,
            noise=self.noise,
            seed=self.seed,
            delay=self.delay,
        )
        dstsp = np.minimum(scores.dstsp, _FAR)
        excess = excess_over(self.floor, float(np.median(dstsp)))
        return Life(life, dstsp, len(ended_fates(life, excess, self.data)))

    def sinks(self, drift: Surrogate, life: Life) -> list[Sink]:
        """Return what runs of ``drift`` end on, or can come to rest at, each once.

        No cycle where the data are one: it may be theirs.
        """
        states = advance(drift, drift.embed(self.starts), _VISITED).reshape(-1, drift.latent_dim)
        found = list[Sink]()
        for sink in [*sinks_of(drift, life.viability), *resting_places(drift, states, self.data)]:
            known = any(same_place(sink, other) for other in found)
            if not known and (sink.period == 1 or not self.periodic):
                found.append(sink)
        return found

    @cached_property
    def periodic(self) -> bool:
        """Whether the data are a cycle."""
        return Repetition(self.data).periodic
