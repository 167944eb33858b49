"""One word on a model, and why: good, fair, or not usable.

- *good*: every free run moves on; D_stsp (the median over starts, with noise as in the data where these are
  noisy) is within 0.5 nats of its floor, and D_H within 0.1, or each within what stretches of the reference
  differ by; and the largest exponent, where the true one is known, is within 15 % of it or three standard
  errors. Where it is not known, a model whose run is not chaotic needs data that repeat themselves
  (`Repetition`), and if the data look like samples of a flow, the map that a chaotic model is must have one
  exponent near zero, as flows have;
- *not usable*: a run diverges, more than one in five ends (at rest, on a cycle, in another region), or
  D_stsp is more than 2 nats above its floor;
- *fair*: anything between; and a model whose score says nothing, because a run at rest would not be more
  than 2 nats above the floor either: few rows, or much noise in many columns.

D_stsp says which places a run visits, D_H at which pace: over 9,000 steps Lorenz-63 at twice its speed has
D_stsp at the floor and D_H 0.32 above, at a speed that is a tenth off 0.04, at one that is a fifth off 0.09.
Models of flows that are good by D_stsp and the exponent have it at most 0.05 above (results/field).

A cycle is an end unless it is the reference's own: the reference repeats itself after the same number of
steps (`Repetition`), and the run scores as a good one does. The score alone would not do: noise in many
columns makes D_stsp blind for what moves in a few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.invariants.repetition import Repetition

if TYPE_CHECKING:
    from palrnn.invariants.exponents import LyapunovSpectrum
    from palrnn.invariants.floors import Floor
    from palrnn.invariants.scorecard import Scorecard
    from palrnn.invariants.viability import Fate, Viability

Grade = Literal["good", "fair", "not usable"]
Cause = Literal[
    "diverges", "rests", "cycle", "leaves", "score", "blind", "spectrum", "exponent", "not chaotic"
]

#: D_stsp above its floor, in nats, up to which a model is good, and fair.
GOOD_EXCESS, FAIR_EXCESS = 0.5, 2.0
#: D_H above its floor up to which a model is good.
GOOD_SPECTRUM = 0.1
#: The largest exponent may be off by this part of the true one, or by so many standard errors.
GOOD_EXPONENT, EXPONENT_ERRORS = 0.15, 3.0
#: The part of the largest exponent by which the one that should be zero may be off.
GOOD_NEUTRAL = 0.3
#: Of the starts, the part that may end in a fair model.
FAIR_ENDS = 0.2


@dataclass(frozen=True)
class Verdict:
    """``grade`` with the ``reasons`` against a better one, in words, and what to try next: ``advice``.

    ``causes`` are the same reasons by name: "diverges", "rests", "cycle", "leaves", "score", "blind" (the
    score says nothing), "spectrum", "exponent", "not chaotic" (a loop, or quasi-periodic).
    """

    grade: Grade
    reasons: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.grade == "good"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"grade": self.grade, "reasons": list(self.reasons), "advice": list(self.advice)}

    def __str__(self) -> str:
        return f"{self.grade}: {'; '.join(self.reasons)}" if self.reasons else self.grade


def verdict(card: Scorecard) -> Verdict:
    """Return what all of ``card`` comes to."""
    excess, ends = _excess(card), _ends(card, _excess(card))
    scores = _score(excess, card.dstsp_floor) or _blind(card)
    runs = card.over_starts_with_noise or card.over_starts
    distance = card.hard.spectrum_distance
    if runs is not None:
        distance = float(np.median(runs.spectrum_distance))
    paces = [] if distance is None else _spectrum(distance, card.spectrum_floor)
    regular = [] if ends or card.chaotic is not False else _not_chaotic(card.reference)
    return _worst_first([*ends, *scores, *paces, *regular, *_exponent(card)])


def quick_verdict(
    life: Viability,
    dstsp: float,
    floor: Floor,
    reference: Floats,
    *,
    spectrum: tuple[float, Floor] | None = None,
    chaotic: bool | None = None,
) -> Verdict:
    """Return what long runs and scores come to, where exponents are not known.

    ``dstsp`` and the D_H of ``spectrum``, beside its floor, are medians over starts, with noise as in the
    data where these are noisy. ``chaotic`` says whether the run is, None that nobody has looked.
    """
    excess = excess_over(floor, dstsp)
    ends = _ended(life, excess, reference)
    paces = [] if spectrum is None else _spectrum(*spectrum)
    regular = [] if ends or chaotic is not False else _not_chaotic(reference)
    return _worst_first([*ends, *_score(excess, floor), *paces, *regular])


def ended_fates(life: Viability, excess: float, reference: Floats) -> list[Fate]:
    """Return the fates that count as an end: a cycle does not, where it is that of ``reference (T, N)``."""
    ended = [fate for fate in life.fates if fate.outcome != "moves on"]
    if excess > GOOD_EXCESS or all(fate.outcome != "cycle" for fate in ended):
        return ended
    repetition = Repetition(reference)
    return [fate for fate in ended if not (fate.outcome == "cycle" and repetition.after(fate.period or 0))]


def excess_over(floor: Floor, dstsp: float) -> float:
    """Return how far D_stsp is above the floor: negative within what the reference differs by."""
    return -1.0 if dstsp <= floor.high else dstsp - floor.median


def _worst_first(found: list[tuple[Grade, Cause, str]]) -> Verdict:
    grade: Grade = "good"
    if found:
        grade = "not usable" if any(each == "not usable" for each, _, _ in found) else "fair"
    found.sort(key=lambda each: each[0] != "not usable")
    return Verdict(grade, tuple(words for _, _, words in found), tuple(cause for _, cause, _ in found))


def _excess(card: Scorecard) -> float:
    runs = card.over_starts_with_noise or card.over_starts
    if runs is not None:
        value = float(np.median(runs.dstsp))
    else:
        value = np.inf if card.hard.dstsp is None else card.hard.dstsp.value
    return excess_over(card.dstsp_floor, value)


def _ends(card: Scorecard, excess: float) -> list[tuple[Grade, Cause, str]]:
    if card.viability is None:
        if card.hard.diverged_at is None:
            return []
        return [("not usable", "diverges", f"diverges after {card.hard.diverged_at:,} steps")]
    return _ended(card.viability, excess, card.reference)


def _ended(life: Viability, excess: float, reference: Floats) -> list[tuple[Grade, Cause, str]]:
    ended, total = ended_fates(life, excess, reference), len(life.fates)
    many = len(ended) > FAIR_ENDS * total
    found: list[tuple[Grade, Cause, str]] = []
    for outcome in ("diverges", "rests", "cycle", "leaves"):
        some = [fate for fate in ended if fate.outcome == outcome]
        if some:
            first: Fate = min(some, key=lambda fate: fate.step or 0)
            grade: Grade = "not usable" if many or outcome == "diverges" else "fair"
            never = {"rests": "; the data never do", "cycle": "; the data do not"}.get(outcome, "")
            found.append((grade, outcome, f"{first} ({len(some)} of {total} starts){never}"))
    return found


def _score(excess: float, reference: Floor) -> list[tuple[Grade, Cause, str]]:
    if excess <= GOOD_EXCESS or not np.isfinite(excess):
        return []
    floor = reference.median
    words = f"D_stsp is {floor + excess:.2g} where the reference differs from itself by {floor:.2g}"
    return [("fair" if excess <= FAIR_EXCESS else "not usable", "score", words)]


def _blind(card: Scorecard) -> list[tuple[Grade, Cause, str]]:
    rest, floor = card.dstsp_at_rest, card.dstsp_floor.median
    if rest is None or rest > floor + FAIR_EXCESS:
        return []
    words = f"D_stsp says little here: a model at rest would have {rest:.3g}, two stretches {floor:.3g}"
    return [("fair", "blind", words)]


def _spectrum(distance: float, reference: Floor) -> list[tuple[Grade, Cause, str]]:
    """Return what D_H says of a run that moves: the median of others is 1, and they are told by their end."""
    floor = reference.median
    if distance <= max(floor + GOOD_SPECTRUM, reference.high) or distance >= 1.0:
        return []
    words = f"D_H is {distance:.2g} where the reference differs from itself by {floor:.2g}"
    return [("fair", "spectrum", f"{words}: it moves at another pace")]


def _not_chaotic(reference: Floats) -> list[tuple[Grade, Cause, str]]:
    if Repetition(reference).periodic:
        return []
    words = "its run is a loop or quasi-periodic (no exponent is positive); the data do not repeat themselves"
    return [("fair", "not chaotic", words)]


def _exponent(card: Scorecard) -> list[tuple[Grade, Cause, str]]:
    model, truth = card.hard.lyapunov, card.lyapunov
    if model is None or not np.isfinite(model.largest):
        return []
    if truth is None:
        return _neutral(card.hard.map_lyapunov or model) if card.flow else []
    error = float(model.stderr[0])
    if card.reference_exponents is not None:
        error = float(np.hypot(error, card.reference_exponents.stderr[0]))
    # a run of length T cannot tell a rate below 1 / T from none
    resolved = 1.0 / float(model.times[-1])
    if abs(model.largest - truth) <= max(GOOD_EXPONENT * abs(truth), EXPONENT_ERRORS * error, resolved):
        return []
    return [("fair", "exponent", f"its largest exponent is {model.largest:.3g}, the true one {truth:.3g}")]


def _neutral(model: LyapunovSpectrum) -> list[tuple[Grade, Cause, str]]:
    nearest = int(np.abs(model.exponents).argmin())
    value = float(model.exponents[nearest])
    if model.neutral <= GOOD_NEUTRAL or abs(value) <= EXPONENT_ERRORS * model.stderr[nearest]:
        return []
    words = f"a flow has an exponent of zero; of the model's map the nearest is {value:.3g}"
    return [("fair", "exponent", f"{words} (the largest {model.largest:.3g}): its slopes are rough")]
