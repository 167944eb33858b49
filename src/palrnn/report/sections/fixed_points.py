"""Fixed points of the model: where it could rest, whether it would stay, and how far from the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.gaps import whole_rows
from palrnn.engine.text import counted
from palrnn.invariants import Scorecard
from palrnn.invariants.viability import STILL
from palrnn.report.blocks import Block, Note, Table, csv_download, number
from palrnn.report.drawing import per_run
from palrnn.report.registry import section
from palrnn.report.sections.bars import bars_tables, of_fixed_points
from palrnn.report.view import Run

_LISTED, _COLUMNS = 12, 3


@section(
    "fixed-points",
    "Fixed points",
    order=50,
    needs="invariants",
    lead="States that the model maps to themselves, solved for in each linear region. One that attracts, "
    "near the data, is where free runs can come to rest; an unstable one steers the motion around it.",
)
def fixed_points(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return a table of fixed points per run, or why there is none."""
    return per_run(runs, lambda run, key: [_block(run), *traps(run), *bars_tables(run, of_fixed_points)])


def _block(run: Run) -> Block:
    card: Scorecard = run["invariants"]
    if card.fixed_points is None:
        return Note(
            f"Not looked for: of the model's 2^{card.gated} regions only visited ones are solved, and its "
            "free run diverged."
        )
    if not len(card.fixed_points) or run.resting is None:
        return Note(f"None in {card.fixed_points.regions:,} regions.")
    return fixed_point_table(run, card, run.resting)


def traps(run: Run) -> list[Note]:
    """Return a line on what attracts within the region of the data, where these do not rest or turn."""
    card: Scorecard = run["invariants"]
    words = []
    found = card.fixed_points
    if found is not None and len(found) and run.resting is not None and _moves(run.reference):
        low, high = np.nanmin(run.reference, axis=0), np.nanmax(run.reference, axis=0)
        within = ((run.resting >= low) & (run.resting <= high)).all(axis=1)
        count = int((within & found.stable).sum())
        if count:
            verb = "attracts" if count == 1 else "attract"
            place = f"{counted(count, 'fixed point')} within the region of the data"
            words.append(f"{place} {verb}, though the data do not rest")
    if card.viability is not None and "cycle" in card.verdict.causes:
        fates = [fate for fate in card.viability.fates if fate.outcome == "cycle"]
        periods = ", ".join(sorted({f"{fate.period:,}" for fate in fates}, key=len))
        some = f"{len(fates)} of {len(card.viability.fates)} long runs"
        words.append(f"{some} fall onto a cycle that the data do not have (period {periods})")
    return [Note(f"{'; '.join(words)}: a run that comes near enough stays there.")] if words else []


def _moves(data: Floats) -> bool:
    """Whether the end of ``data`` moves, in deviations of it, as `viability` asks of a run."""
    spread = np.nanstd(data, axis=0)
    end = data[-max(2, len(data) // 10) :]
    end = end[whole_rows(end)]
    return bool(len(end) and (np.ptp(end, axis=0) > STILL * np.where(spread > 0, spread, np.inf)).any())


def fixed_point_table(run: Run, card: Scorecard, places: Floats) -> Table:
    """Return the fixed points at raw ``places (K, N)``, those nearest to the data first."""
    found = card.fixed_points
    assert found is not None
    away = distances(places, run.reference)
    order = np.argsort(away, kind="stable")
    shown = run.columns[:_COLUMNS]
    header = ("", *shown, "Stability", "Largest |eigenvalue|", "From the data, deviations")
    moduli = np.abs(found.eigenvalues).max(axis=1, initial=0.0)
    rows = []
    for rank, k in enumerate(order, start=1):
        out = int(found.unstable_directions[k])
        kind = "attracts" if found.stable[k] else f"unstable in {counted(out, 'direction')}"
        place = [number(float(value)) for value in places[k, : len(shown)]]
        rows.append((str(rank), *place, kind, f"{moduli[k]:.4f}", number(float(away[k]), 2)))
    total, stable = len(found), int(found.stable.sum())
    every = found.regions == 2**card.gated
    where = f"all {found.regions:,}" if every else f"the visited {found.regions:,}"
    where = f"{where} regions" if found.regions > 1 else "the only region visited"
    caption = f"{total} in {where}, {stable} of them attracting"
    caption += f"; the {_LISTED} nearest to the data." if total > _LISTED else "."
    if len(run.columns) > _COLUMNS:
        caption += f" Positions by the first {_COLUMNS} of {len(run.columns)} columns."
    return Table(caption, header, tuple(rows[:_LISTED]), (csv_download("fixed-points.csv", header, rows),))


def distances(places: Floats, data: Floats) -> Floats:
    """Return how far each place is from the nearest whole row of ``data``, root mean square in deviations."""
    spread = np.nanstd(data, axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    rows = data[whole_rows(data)]
    if not len(rows):
        return np.full(len(places), np.nan)
    return np.array([np.sqrt((((rows - place) / scale) ** 2).mean(axis=1).min()) for place in places])
