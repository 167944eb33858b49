"""Invariants: is it the same dynamics? Every score stands beside that of the data against itself."""

from __future__ import annotations

from collections.abc import Sequence

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
        "data itself, of the same length: a model cannot be asked to do better.",
        tuple(blocks),
    )


def table(runs: Sequence[Run]) -> Table:
    """Return the scores, with a column per run and the reference values where there are any."""
    all_found = [run.invariants for run in runs if run.invariants is not None]
    first = all_found[0]
    rows = [
        (
            "State-space divergence D_stsp",
            *(number(found.dstsp) for found in all_found),
            _floor(first.dstsp_floor),
        ),
        ("Generated points outside the data's box", *(_share(found.outside) for found in all_found), "0 %"),
        (
            "Power-spectrum distance D_H",
            *(number(found.spectrum_distance) for found in all_found),
            _floor(first.spectrum_floor),
        ),
    ]
    for i in range(min(_LISTED, max(len(found.exponents) for found in all_found))):
        known = number(first.reference_exponents[i]) if i < len(first.reference_exponents) else ""
        rows.append(
            (f"Lyapunov exponent λ{chr(0x2081 + i)}", *(_exponent(found, i) for found in all_found), known)
        )
    rows.append(("Kaplan–Yorke dimension", *(number(found.kaplan_yorke) for found in all_found), ""))
    longest = max(len(found.mse) for found in all_found)
    if longest:
        rows.append(
            (
                f"Squared error {longest} steps ahead",
                *(number(found.mse[-1]) if found.mse else "–" for found in all_found),
                "0",
            )
        )
    rows.append(("Useful forecast", *(_horizon(found) for found in all_found), ""))
    source = f" Reference: {first.reference_source}." if first.reference_source else ""
    names = [run.name for run in runs] if len(runs) > 1 else ["Model"]
    return Table(
        f"Free-running rollouts of {first.steps} steps against the held-out data.{source}",
        ("", *names, "Floor or reference"),
        tuple(rows),
        (csv_download("invariants.csv", ("quantity", *names, "floor or reference"), rows),),
    )


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
        words.append(
            f"{name}: λ₁ is {_exponent(found, 0)}, {positive} of {len(order)} exponents are positive"
        )
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
            "yaxis": axis("exponent per unit of time"),
        },
        downloads=(csv_download("lyapunov.csv", ("run", "number", "exponent", "standard error"), rows),),
    )


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


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share)
