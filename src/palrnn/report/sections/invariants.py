"""Invariants: is it the same dynamics? Every score stands beside that of the reference against itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from palrnn.engine.text import counted
from palrnn.invariants import FixedPoints, Floor, Quantities, Scorecard, Verdict
from palrnn.report.blocks import Block, Card, Figure, Note, Table, csv_download, number, with_error
from palrnn.report.drawing import axis, colour, percent, sentence
from palrnn.report.registry import headline, section
from palrnn.report.sections.bars import bars_tables, interval, of_fixed_points
from palrnn.report.sections.forecast import ERRORS, horizon, lasts
from palrnn.report.sections.scores import scores
from palrnn.report.view import Run

_LISTED = 4


@section(
    "invariants",
    "Invariants",
    order=40,
    needs="invariants",
    lead="Long-run properties that do not depend on the starting point. The floor is the distance between "
    "stretches of the reference itself, of the same length: a model cannot be asked to do better.",
)
def invariants(runs: Sequence[Run]) -> list[Block]:
    """Return the table of invariants and the Lyapunov spectra of all runs."""
    names = [run.name for run in runs]
    cards: list[Scorecard] = [run["invariants"] for run in runs]
    blocks: list[Block] = []
    for name, card in zip(names, cards, strict=True):
        if card.hard.diverged_at is not None:
            blocks.append(
                Note(f"{name}: the free-running model diverged after {card.hard.diverged_at} steps.")
            )
    if any(card.over_starts is not None for card in cards):
        blocks.append(scores(runs))
    spectra = [run for run, card in zip(runs, cards, strict=True) if card.hard.lyapunov is not None]
    blocks += [spectrum(spectra)] if spectra else []
    table = invariants_table(cards, names)
    # the banner on top of the page has said the verdict, and why
    kept = tuple(row for i, row in enumerate(table.rows) if i >= _rows_of_verdict(cards))
    for run in runs:
        blocks += bars_tables(run, lambda name: not of_fixed_points(name))
    return [*blocks, replace(table, rows=kept)]


def _rows_of_verdict(cards: Sequence[Scorecard]) -> int:
    return 2 if len(cards) > 1 and any(card.verdict.reasons for card in cards) else 1


@headline(order=0, needs="invariants")
def verdict(run: Run) -> Card:
    """Return what it all comes to, and what to try next."""
    card: Scorecard = run["invariants"]
    words = verdict_words(card)
    if run.advice:
        words += f" Try: {'; '.join(run.advice)}."
    return Card("Verdict", card.verdict.grade, words)


def verdict_words(card: Scorecard) -> str:
    """Return the reasons of a verdict as sentences, and what becomes of long runs unless they say so."""
    found = card.verdict
    words = f"{_capital('; '.join(found.reasons))}." if found.reasons else "Nothing speaks against the model."
    if card.viability is None or {"diverges", "rests", "cycle", "leaves"} & set(found.causes):
        return words
    words = f"{words} In the long run it {card.viability.verdict}."
    if "cycle" in card.viability.counts:
        words += " That is taken for the data's own cycle: scores are good, no true exponent is known."
    return words


@headline(order=10, needs="invariants")
def divergence(run: Run) -> Card:
    """Return D_stsp beside its floor."""
    card: Scorecard = run["invariants"]
    found, floor, label = card.hard.dstsp, card.dstsp_floor, "State-space divergence D_stsp"
    if found is None:
        return Card(
            label,
            "none",
            f"The free run diverged after {card.hard.diverged_at} steps, so there is nothing to compare.",
        )
    runs = card.over_starts_with_noise or card.over_starts
    value = found.value if runs is None else float(np.median(runs.dstsp))
    verdict = "no more than" if value <= floor.high else "more than"
    source = "stretches of the data" if card.system is None else f"simulations of {card.system}"
    noise = "" if card.over_starts_with_noise is None else " with noise added as in the data"
    sentence = (
        f"How differently the generated path{noise} and {reference_name(card)} fill state space (0: alike): "
        f"{verdict} {source} differ among themselves, {number(floor.median)} (floor; up to "
        f"{number(floor.high)}), over {floor.length:,} steps."
    )
    spread = ""
    if runs is not None:
        spread = f"{number(float(runs.dstsp.min()))} to {_most(runs.dstsp)}"
        sentence = f"Median and range over {len(runs.dstsp)} starts. {sentence}"
    return Card(label, number(value), sentence, spread)


@headline(order=20, needs="invariants")
def exponent(run: Run) -> Card:
    """Return the largest Lyapunov exponent and the pace that it means."""
    card: Scorecard = run["invariants"]
    found, label = card.hard.lyapunov, "Largest Lyapunov exponent λ₁"
    if found is None:
        words = f"The free run diverged after {card.hard.diverged_at} steps, so there is no exponent."
        return Card(label, "none", words)
    if not np.isfinite(found.largest):
        return Card(label, "−∞", "Nearby states become the same at once: the model is not chaotic.")
    error = float(found.stderr[0])
    words = "Nearby states do not part: the model is not chaotic."
    if found.largest > 0:
        units = "steps" if run.dt is None else "time units"
        pace = f"Nearby states part by a factor e in {number(1 / found.largest)} {units}"
        words = f"{pace}, or not: that is within its error."
        if found.largest > ERRORS * error:
            words = f"{pace}: the model is chaotic." if lasts(card) else f"{pace}, for as long as it moves."
    if card.viability is not None and "diverges" in card.viability.counts:
        words += " It grows without bounds: what parts there does not come from chaos."
    elif not lasts(card):
        words += " That is for the time of this run, not for the long one."
    if card.lyapunov is not None:
        words += f" The true system has {number(card.lyapunov)}."
    if card.hard.map_lyapunov is not None:
        of_map = number(card.hard.map_lyapunov.largest)
        words += f" This is of growth across the path, as of a flow; the map of one step has {of_map}."
    bars, unit = interval(run, "exponent 1"), with_error(found.largest, error).partition(" ")[2]
    if run.bars is not None and bars is not None:
        unit = f"{number(bars[0])} to {number(bars[1])}"
        words = f"With its 90 % interval over models by {run.bars['method']}. {words}"
    return Card(label, number(found.largest), words, unit)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def invariants_table(
    cards: Sequence[Scorecard], names: Sequence[str] = ("Model",), reference: str = ""
) -> Table:
    """Return the scores of each model with what they are to be read against.

    For one model that is a column of its own, after one for its samples where it is a PAL-RNN; for several,
    whose data may differ, a row below the score. ``reference`` says what they were compared with.
    """
    if len(cards) == 1:
        card = cards[0]
        columns = [card.hard] + ([card.sampled] if card.sampled is not None else [])
        header: tuple[str, ...] = ("", "Model", "Sampled", "Floor or reference")
        header = header if card.sampled is not None else (*header[:2], header[3])
        rows = [(label, *values, against[0]) for label, values, against in _lines(columns, [card])]
    else:
        header, rows = ("", *names), []
        for label, values, against in _lines([card.hard for card in cards], cards):
            rows.append((label, *values))
            if any(against):
                rows.append(("↳ floor or reference", *against))
    steps = " or ".join(dict.fromkeys(str(len(card.reference)) for card in cards))
    truth = reference or " or ".join(dict.fromkeys(map(reference_name, cards)))
    caption = f"Free runs of {steps} steps against the reference: {truth}."
    files = (csv_download("invariants.csv", header, rows),)
    return Table(caption, header, tuple(rows), files)


def verdict_lines(card: Scorecard, verdict: Verdict) -> list[str]:
    """Return the verdict on a model as lines for people: what it is, how long it lives, what to try."""
    lines = [f"verdict: {verdict}"]
    if card.viability is not None:
        lines.append(f"the free run {card.viability.verdict}")
    return lines + ([f"try: {'; '.join(verdict.advice)}"] if verdict.advice else [])


def reference_name(card: Scorecard) -> str:
    """Return what the free run was compared with, in words."""
    return "the held-out data" if card.system is None else f"a simulation of {card.system}"


def _lines(
    runs: Sequence[Quantities], cards: Sequence[Scorecard]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield label, scores (one per run) and what they stand against (one per card)."""
    # verdict and spread are of the hard-gated model; a column for samples has none
    blank, none = [""] * (len(runs) - len(cards)), [""] * len(cards)
    # of one model the reasons are told beside the table; a long cell would widen all of it
    reasons = [_reasons(card) for card in cards] if len(cards) > 1 else none
    yield "Verdict", [card.verdict.grade for card in cards] + blank, reasons
    if any(card.viability is not None for card in cards):
        yield "Long free runs", [_alive(card) for card in cards] + blank, [_life(card) for card in cards]
    yield (
        "State-space divergence D_stsp",
        [_dstsp(run) for run in runs],
        [_floor(card.dstsp_floor) for card in cards],
    )
    if any(card.over_starts is not None for card in cards):
        yield "the same, over starts: median (range)", [_over(card, 0) for card in cards] + blank, none
    if any(card.over_starts_with_noise is not None for card in cards):
        noisy = [_over(replace(card, over_starts=card.over_starts_with_noise), 0) for card in cards]
        yield "the same, with noise added as in the data", noisy + blank, [_noise(card) for card in cards]
    outside = ["–" if run.dstsp is None else percent(run.dstsp.outside) for run in runs]
    yield "Generated points outside the reference's box", outside, none
    distances = [number(run.spectrum_distance) for run in runs]
    yield "Power-spectrum distance D_H", distances, [_floor(card.spectrum_floor) for card in cards]
    if any(card.over_starts is not None for card in cards):
        yield "the same, over starts: median (range)", [_over(card, 1) for card in cards] + blank, none
    most = max((len(run.lyapunov.exponents) for run in runs if run.lyapunov is not None), default=0)
    for i in range(min(_LISTED, most)):
        label = f"Lyapunov exponent λ{chr(0x2081 + i)}"
        yield label, [_exponent(run, i) for run in runs], [_true_exponent(card, i) for card in cards]
    if any(run.map_lyapunov is not None for run in runs):
        # samples with noise have no other
        maps = [replace(run, lyapunov=run.map_lyapunov or run.lyapunov) for run in runs]
        yield "λ₁ of the map instead of the flow", [_exponent(run, 0) for run in maps], none
    dimensions = [number(None if run.lyapunov is None else run.lyapunov.kaplan_yorke) for run in runs]
    truths = [card.reference_exponents for card in cards]
    true = ["" if truth is None else number(truth.kaplan_yorke) for truth in truths]
    yield "Kaplan–Yorke dimension", dimensions, true
    # so are forecasts and codes
    ahead = max(len(card.prediction.mse) for card in cards)
    for steps in dict.fromkeys((1, ahead)):
        errors = [
            number(float(card.prediction.mse[min(steps, len(card.prediction.mse)) - 1])) for card in cards
        ]
        words = f"Squared error {steps} step{'s' * (steps > 1)} ahead, standardised"
        yield words, errors + blank, none
    yield "Useful forecast", [horizon(card.prediction) for card in cards] + blank, none
    if any(card.gated for card in cards):
        visited = ["–" if card.symbols is None else str(len(card.symbols.codes)) for card in cards]
        yield "Switching codes visited", visited + blank, [f"of {2**card.gated:,} regions" for card in cards]
        rates = ["–" if c.symbols is None else number(c.symbols.entropy_rate()) for c in cards]
        yield "Entropy rate of the codes, bits per step", rates + blank, none
    points = [card.fixed_points for card in cards]
    if any(found is not None for found in points):
        counts = ["–" if found is None else str(len(found)) for found in points]
        stable = [_stable(found, card) for found, card in zip(points, cards, strict=True)]
        yield "Fixed points", counts + blank, stable


def _stable(found: FixedPoints | None, card: Scorecard) -> str:
    if found is None:
        return ""
    where = "" if found.regions == 2**card.gated else f" (of {counted(found.regions, 'region')} visited)"
    return f"{int(found.stable.sum())} stable{where}"


def spectrum(runs: Sequence[Run]) -> Figure:
    """Return the Lyapunov spectra as points with error bars, the reference as rings."""
    traces: list[dict[str, Any]] = []
    rows: list[tuple[Any, ...]] = []
    words = []
    for i, run in enumerate(runs):
        card: Scorecard = run["invariants"]
        found = card.hard.lyapunov
        assert found is not None
        values, errors = _finite(found.exponents), _finite(found.stderr)
        order = list(range(1, len(values) + 1))
        name = run.name if len(runs) > 1 else "model"
        bars = {"type": "data", "array": errors, "color": colour(i), "thickness": 1}
        marks = {"color": colour(i), "size": 8}
        traces.append(_points(order, values, name, marks) | {"error_y": bars})
        rows += [(run.name, *row) for row in zip(order, values, errors, strict=True)]
        positive = f"{int((found.exponents > 0).sum())} of {found.dimension}"
        if found.exponents[-1] > 0 and len(found.exponents) < found.dimension:
            positive = f"at least {positive}"
        words.append(f"{name}: λ₁ is {_exponent(card.hard, 0)}, positive exponents: {positive}")
    known = next((true for run in runs if (true := _true_exponents(run["invariants"]))), [])
    if known:
        ring = {"color": "@ink", "size": 13, "symbol": "circle-open", "line": {"width": 1.5}}
        traces.append(_points(list(range(1, len(known) + 1)), known, "reference", ring))
        words.append(f"the reference has λ₁ = {number(known[0])}")
    layout = {
        "xaxis": axis("number", **({"nticks": 10} if len(rows) > 12 else {"dtick": 1})),
        "yaxis": axis(f"exponent {_rate(runs)}"),
    }
    return Figure(
        "lyapunov",
        "Lyapunov spectrum",
        sentence(
            words, "Bars are standard errors; exponents of minus infinity are left out.", named=len(runs) > 1
        ),
        tuple(traces),
        layout,
        downloads=(csv_download("lyapunov.csv", ("run", "number", "exponent", "standard error"), rows),),
    )


def _points(x: list[int], y: list[float | None], name: str, marker: dict[str, Any]) -> dict[str, Any]:
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker}


def _rate(runs: Sequence[Run]) -> str:
    timed = [run.dt is not None for run in runs]
    if all(timed):
        return "per unit of time"
    return "per unit of time, or per step where that is unknown" if any(timed) else "per step"


def _dstsp(run: Quantities) -> str:
    if run.dstsp is None:
        return "–" if run.diverged_at is None else f"diverged after {run.diverged_at} steps"
    error = run.dstsp.stderr if run.dstsp.method == "mixture" else None
    return with_error(run.dstsp.value, error)


def _exponent(run: Quantities, i: int) -> str:
    if run.lyapunov is None or i >= len(run.lyapunov.exponents):
        return "–"
    value, error = float(run.lyapunov.exponents[i]), float(run.lyapunov.stderr[i])
    if not np.isfinite(value):
        return "−∞"
    return with_error(value, error)


def _true_exponents(card: Scorecard) -> list[float | None]:
    if card.reference_exponents is not None:
        return _finite(card.reference_exponents.exponents)
    return [] if card.lyapunov is None else [card.lyapunov]


def _true_exponent(card: Scorecard, i: int) -> str:
    known, truth = _true_exponents(card), card.reference_exponents
    if i >= len(known):
        return ""
    return with_error(known[i], None if truth is None else float(truth.stderr[i]))


def _floor(floor: Floor) -> str:
    spread = f"{number(floor.low)} to {number(floor.high)}"
    return f"{number(floor.median)} ({spread}, {len(floor.values)} pairs of {floor.length} steps)"


def _noise(card: Scorecard) -> str:
    if card.noise is None:
        return ""
    share = float(np.median(card.noise / np.nanstd(card.reference, axis=0)))
    return f"noise of {percent(share)} of a deviation, estimated"


def _reasons(card: Scorecard) -> str:
    return "; ".join(card.verdict.reasons)


def _alive(card: Scorecard) -> str:
    found = card.viability
    return "–" if found is None else f"{found.alive} of {len(found.fates)} move on"


def _life(card: Scorecard) -> str:
    return "" if card.viability is None else f"for {card.viability.steps:,} steps"


def _most(values: Any) -> str:
    return number(float(values.max())) if np.isfinite(values.max()) else "diverged"


def _over(card: Scorecard, which: int) -> str:
    found = card.over_starts
    if found is None:
        return "–"
    values = (found.dstsp, found.spectrum_distance)[which]
    spread = f"{number(float(values.min()))} to {_most(values)}"
    return f"{number(float(np.median(values)))} ({spread}, {len(values)} starts)"


def _finite(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
