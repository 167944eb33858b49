"""How good a candidate is, on rows to train on: first whether it lives, then how near it comes.

1. The *grade* of `palrnn.invariants.verdict`: good, fair or not usable, from long free runs of ten starts,
   from D_stsp and D_H against their floors, and, for samples of a flow that do not repeat themselves, from
   whether the run is chaotic. A model that comes to rest is not usable, whatever it scores.
2. Of models that are good or fair, those of which every run moves on.
3. Then the *loss*: D_stsp above its floor, five times D_H above its floor, six for the part of the starts
   that end, and, for samples of a flow, four times how rough the model is: by what part of the larger one its
   largest exponent differs from that of the flow that it samples, the median of three starts. They are equal
   where slopes are right.
4. Of equal losses, as models that all come to rest have, the smaller error ten steps ahead.

Against noisy data the run gets noise of the level that the series is estimated to have, as in the scorecard:
a perfect model would otherwise be punished for not being noisy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from palrnn.data import noise_level
from palrnn.engine.checks import Floats
from palrnn.invariants import (
    DivergenceError,
    Verdict,
    dstsp_floor,
    lyapunov_spectrum,
    prediction_error,
    samples_flow,
    spectrum_floor,
    viability,
)
from palrnn.invariants.exponents import GROWN, LONG_EXPONENT, has_grown
from palrnn.invariants.free_run import drives_from
from palrnn.invariants.over_starts import scores_over_starts
from palrnn.invariants.verdict import ended_fates, excess_over, quick_verdict
from palrnn.invariants.viability import spread_rows
from palrnn.model import Surrogate
from palrnn.searches.parts import Parts

#: What D_H, an end and exponents that disagree count for beside a nat of D_stsp. An exponent is off by about
#: as much of itself as map and flow disagree: 0.12 of it are then worth the half a nat that is still good.
SPECTRUM_WEIGHT, END_WEIGHT, ROUGH_WEIGHT = 5.0, 6.0, 4.0
# D_stsp of a run that diverges, so that such models still have an order
_FAR = 20.0
_STARTS, _DISCARD, _PAIRS, _AHEAD, _SEEN_NOISE = 10, 1000, 10, 10, 0.005
_EXPONENT_STEPS = 10_000
# of the ten starts, those that tell how rough a model is
_ROUGH_STARTS = slice(0, None, 4)
_GRADES = ("good", "fair", "not usable")


@dataclass(frozen=True)
class Judgement:
    """What a candidate came to: medians over ``starts`` runs, of which ``alive`` move on for ``steps``.

    ``ended`` of them end where the data do not. ``error`` is the mean squared one ten steps ahead; ``noisy``
    says that D_stsp and D_H are of runs with noise; ``rough`` is by what part the largest exponents of map
    and flow differ (`lyapunov_spectrum`), 0 where the data are no samples of a flow.
    """

    grade: str
    reasons: tuple[str, ...]
    alive: int
    ended: int
    starts: int
    steps: int
    dstsp: float
    dstsp_floor: float
    spectrum_distance: float
    spectrum_floor: float
    error: float
    noisy: bool
    rough: float = 0.0

    @property
    def loss(self) -> float:
        """The sum that decides between equal grades; 0 is as near as two stretches of the data are.

        Scored by all rows, a perfect model has less: floors are of halves, and of more rows they are lower.
        """
        return (
            self.dstsp
            - self.dstsp_floor
            + SPECTRUM_WEIGHT * (self.spectrum_distance - self.spectrum_floor)
            + END_WEIGHT * self.ended / self.starts
            + ROUGH_WEIGHT * self.rough
        )

    @property
    def key(self) -> tuple[int, bool, float, float]:
        """What candidates are sorted by, the best first."""
        grade = _GRADES.index(self.grade)
        # of models that are no use the loss decides, which counts ends, too: early rungs have no others
        return grade, self.ended > 0 and grade < 2, self.loss, self.error

    @property
    def verdict(self) -> str:
        """The grade and what speaks against a better one."""
        return f"{self.grade}: {'; '.join(self.reasons)}" if self.reasons else self.grade

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"reasons": list(self.reasons)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Judgement:
        """Return the judgement of `to_dict`."""
        return cls(**(values | {"reasons": tuple(values["reasons"])}))


#: The largest exponent per step from a start ``(N,)``, along so many steps, of the map or of the flow.
Exponent = Callable[[Floats, int, bool], float]


def judge_model(
    model: Surrogate, data: Parts, *, long_steps: int, seed: int = 0, exponent: Exponent | None = None
) -> Judgement:
    """Return how good ``model`` is; its runs begin at validation rows and are of ``long_steps`` steps.

    Where they go is compared with ``data.reference``, see `Parts.scored_by_all_rows`.

    ``exponent`` is for models that `lyapunov_spectrum` does not know.
    """
    rows = spread_rows(data.validation, _STARTS)
    points, drives = data.validation[rows], drives_from(data.validation_inputs, rows)
    life = viability(model, points, long_steps, inputs=drives, data=data.seen)
    level = noise_level(data.longest)
    noise = level if (level > _SEEN_NOISE * np.nanstd(data.longest, axis=0)).any() else None
    length, delay = data.floor_length, data.delay
    scores = scores_over_starts(
        model,
        points,
        data.reference,
        standardizer=data.standardizer,
        discard=_DISCARD,
        drives=drives,
        noise=noise,
        seed=seed,
        delay=delay,
    )
    alike = data.floor_source
    floor = dstsp_floor(alike, length=length, pairs=_PAIRS, delay=delay, seed=seed)
    rhythm = spectrum_floor(alike, length=length, pairs=_PAIRS, seed=seed)
    dstsp = float(np.median(np.minimum(scores.dstsp, _FAR)))
    pace = float(np.median(scores.spectrum_distance))
    rough, chaotic = 0.0, None
    if samples_flow(model, data.longest, points[0]):
        rough, chaotic = _exponents(model, points[_ROUGH_STARTS], exponent, life.viable)
    found: Verdict = quick_verdict(life, dstsp, floor, data.longest, spectrum=(pace, rhythm), chaotic=chaotic)
    along = data.validation_inputs
    ahead = prediction_error(model, data.validation, _AHEAD, inputs=along, horizon=_AHEAD).mse[-1]
    ended = ended_fates(life, excess_over(floor, dstsp), data.longest)
    return Judgement(
        grade=found.grade,
        reasons=found.reasons,
        alive=life.alive,
        ended=len(ended),
        starts=len(life.fates),
        steps=long_steps,
        dstsp=dstsp,
        dstsp_floor=floor.median,
        spectrum_distance=pace,
        spectrum_floor=rhythm.median,
        error=float(min(ahead, _FAR)) if np.isfinite(ahead) else _FAR,
        noisy=noise is not None,
        rough=rough,
    )


def _exponents(
    model: Surrogate, starts: Floats, exponent: Exponent | None, lives: bool
) -> tuple[float, bool | None]:
    """Return how rough ``model`` is, the median of ``starts (S, N)``, and whether its run is chaotic.

    It is rough by what part of the larger one the largest exponents of map and flow differ: 0 without chaos,
    where both are as good as zero or below; 1 of a run that diverges. Of a model that ``lives`` longer runs
    say whether there is no chaos from any of them.
    """
    found = [_exponents_from(model, start, exponent, lives) for start in starts]
    told = [chaotic for _, chaotic in found if chaotic is not None]
    return float(np.median([rough for rough, _ in found])), any(told) if told else None


def _exponents_from(
    model: Surrogate, start: Floats, exponent: Exponent | None, lives: bool
) -> tuple[float, bool | None]:
    def largest(flow: bool, steps: int) -> float:
        if exponent is not None:
            return exponent(start, steps, flow)
        how: dict[str, Any] = {"steps": steps, "discard": _DISCARD, "dt": 1.0, "k": 1, "flow": flow}
        return lyapunov_spectrum(model, start, **how).largest

    try:
        of_map, of_flow = largest(False, _EXPONENT_STEPS), largest(True, _EXPONENT_STEPS)
        most = max(of_map, of_flow)
        if has_grown(most, _EXPONENT_STEPS):
            # what is left of an exponent of zero is about one over the steps: it comes to count beyond that
            sure = min(1.0, most * _EXPONENT_STEPS / GROWN - 1.0)
            return sure * min(1.0, abs(of_map - of_flow) / most), True
        return 0.0, has_grown(largest(False, LONG_EXPONENT), LONG_EXPONENT) if lives else None
    except DivergenceError:
        return 1.0, None


def failed(update: int, long_steps: int) -> Judgement:
    """Return the judgement of a candidate whose training diverged: the last of all."""
    words = f"training diverged at update {update:,}"
    ends = _STARTS
    return Judgement("not usable", (words,), 0, ends, ends, long_steps, _FAR, 0.0, 1.0, 0.0, _FAR, False, 1.0)
