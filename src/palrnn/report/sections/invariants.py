"""Invariants: is it the same dynamics? Every score stands beside that of the reference against itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palrnn.report.blocks import Figure, Note, Section, Table, csv_download, number
from palrnn.report.findings import Invariants, Run, Spread
from palrnn.report.sections.drawing import axis, colour, percent, sentence

_LISTED = 4


def section(runs: Sequence[Run]) -> Section | None:
    """Return the table of invariants and the Lyapunov spectra of all runs."""
    having = [run for run in runs if run.invariants is not None]
    if not having:
        return None
    blocks: list[Note | Table | Figure] = [table(having)]
    for run in having:
        assert run.invariants is not None
        if run.invariants.diverged_at is not None:
            blocks.append(
                Note(f"{run.name}: the free-running model diverged after {run.invariants.diverged_at} steps.")
            )
    spectra = [run for run in having if run.invariants and run.invariants.exponents]
    if spectra:
        blocks.append(spectrum(spectra))
    return Section(
        "invariants",
        "Invariants",
        "Long-run properties that do not depend on the starting point. The floor is the distance between "
        "stretches of the "
        "reference itself, of the same length: a model cannot be asked to do better.",
        tuple(blocks),
    )


def table(runs: Sequence[Run]) -> Table:
    """Return the scores of each run with what they are to be read against.

    For one run that is a column of its own; for several, whose data may differ, a row below the score.
    """
    found = [run.invariants for run in runs if run.invariants is not None]
    lines = list(_lines(found))
    if len(runs) == 1:
        header: tuple[str, ...] = ("", "Model", "Floor or reference")
        rows: tuple[tuple[str, ...], ...] = tuple(
            (label, values[0], against[0]) for label, values, against in lines
        )
    else:
        header = ("", *(run.name for run in runs))
        scores = [
            [(label, *values)] + ([("↳ floor or reference", *against)] if any(against) else [])
            for label, values, against in lines
        ]
        rows = tuple(row for pair in scores for row in pair)
    sources = dict.fromkeys(part.reference_source for part in found if part.reference_source)
    steps = " or ".join(dict.fromkeys(str(part.steps) for part in found))
    against = " or ".join(dict.fromkeys(part.reference for part in found))
    caption = f"Free runs of {steps} steps against the reference: {against}."
    if sources:
        caption += f" Its exponents: {'; '.join(sources)}."
    return Table(caption, header, rows, (csv_download("invariants.csv", header, rows),))


def _lines(found: Sequence[Invariants]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield label, scores and what they stand against, each with one entry per run."""
    none = [""] * len(found)
    yield (
        "State-space divergence D_stsp",
        [number(part.dstsp) for part in found],
        [_floor(part.dstsp_floor) for part in found],
    )
    outside = ["–" if part.outside is None else percent(part.outside) for part in found]
    yield "Generated points outside the reference's box", outside, none
    yield (
        "Power-spectrum distance D_H",
        [number(part.spectrum_distance) for part in found],
        [_floor(part.spectrum_floor) for part in found],
    )
    for i in range(min(_LISTED, max(len(part.exponents) for part in found))):
        known = [part.reference_exponents for part in found]
        yield (
            f"Lyapunov exponent λ{chr(0x2081 + i)}",
            [_exponent(part, i) for part in found],
            [number(values[i]) if i < len(values) else "" for values in known],
        )
    yield "Kaplan–Yorke dimension", [number(part.kaplan_yorke) for part in found], none
    ahead = max(len(part.mse) for part in found)
    if ahead:
        errors = [number(part.mse[-1]) if part.mse else "–" for part in found]
        yield f"Squared error {ahead} steps ahead, standardised", errors, none
    yield "Useful forecast", [_horizon(part) for part in found], none


def spectrum(runs: Sequence[Run]) -> Figure:
    """Return the Lyapunov spectra as points with error bars, the reference as rings."""
    traces, rows, words = [], [], []
    for i, run in enumerate(runs):
        found = run.invariants
        assert found is not None
        order = list(range(1, len(found.exponents) + 1))
        name = run.name if len(runs) > 1 else "model"
        marks = {"color": colour(i), "size": 8}
        bars = {"type": "data", "array": found.exponents_stderr, "color": colour(i), "thickness": 1}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": order,
                "y": found.exponents,
                "error_y": bars,
                "marker": marks,
                "name": name,
            }
        )
        rows += [
            (run.name, k, value, error)
            for k, value, error in zip(order, found.exponents, found.exponents_stderr, strict=True)
        ]
        positive = sum(1 for value in found.exponents if value is not None and value > 0)
        words.append(f"{name}: λ₁ is {_exponent(found, 0)}, positive exponents: {positive} of {len(order)}")
    known: tuple[float, ...] = next(
        (
            run.invariants.reference_exponents
            for run in runs
            if run.invariants and run.invariants.reference_exponents
        ),
        (),
    )
    if known:
        ring = {"color": "@ink", "size": 13, "symbol": "circle-open", "line": {"width": 1.5}}
        order = list(range(1, len(known) + 1))
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": order,
                "y": known,
                "marker": ring,
                "name": "reference",
            }
        )
        words.append(f"the reference has λ₁ = {number(known[0])}")
    return Figure(
        "lyapunov",
        "Lyapunov spectrum",
        sentence(words, "Bars are standard errors; exponents of minus infinity are left out."),
        tuple(traces),
        {
            "xaxis": axis("number", dtick=5 if len(rows) > 12 else 1),
            "yaxis": axis(f"exponent {_rate(runs)}"),
        },
        downloads=(csv_download("lyapunov.csv", ("run", "number", "exponent", "standard error"), rows),),
    )


def _rate(runs: Sequence[Run]) -> str:
    timed = [run.dt is not None for run in runs]
    if all(timed):
        return "per unit of time"
    return "per unit of time, or per step where that is unknown" if any(timed) else "per step"


def _exponent(found: Invariants, i: int) -> str:
    if i >= len(found.exponents):
        return "–"
    value, error = found.exponents[i], found.exponents_stderr[i] if i < len(found.exponents_stderr) else None
    if value is None:
        return "−∞"
    return number(value) if not error else f"{number(value)} ± {number(error, 2)}"


def _horizon(found: Invariants) -> str:
    if found.valid_steps is None:
        return "–"
    times = f" = {number(found.valid_time)} Lyapunov times" if found.valid_time is not None else ""
    return f"{number(found.valid_steps)} steps{times}"


def _floor(floor: Spread | None) -> str:
    if floor is None:
        return "too little data"
    spread = f"{number(floor.low)} to {number(floor.high)}"
    return f"{number(floor.median)} ({spread}, {floor.pairs} pairs of {floor.length} steps)"
