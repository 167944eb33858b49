"""Power spectra: at which frequencies the model moves, and the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palrnn.invariants import Scorecard, power_spectrum
from palrnn.report.blocks import Block, Figure, Note, csv_download, number, typed_array
from palrnn.report.coordinates import Coordinates
from palrnn.report.drawing import colour, line, log_axis, per_run, thinned
from palrnn.report.registry import section
from palrnn.report.view import Run

# coordinates that are drawn, and frequencies at most
_COORDINATES, _FREQUENCIES = 3, 150


@section(
    "power",
    "Frequencies",
    order=30,
    needs="invariants",
    lead="How much of the motion is at which frequency. A model whose spectrum is a line where that of the "
    "reference is broad has found a cycle instead of the dynamics.",
)
def spectra(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return one figure per run, or that it diverged."""
    return per_run(runs, _blocks)


def _blocks(run: Run, key: str) -> list[Block]:
    found = run["invariants"].hard
    if found.spectrum_distance is None:
        return [Note(f"No spectrum: the free run diverged after {found.diverged_at} steps.")]
    return [power(run, f"{key}-power")]


def power(run: Run, key: str) -> Figure:
    """Return the smoothed power spectra of the first coordinates, of the model and of the reference."""
    card: Scorecard = run["invariants"]
    length = min(len(card.reference), len(card.hard.generated))
    shown = thinned(length // 2, _FREQUENCIES) + 1
    frequencies = shown / (length * (run.dt or 1.0))
    reference, generated = card.reference[:length], card.hard.generated[:length]
    # gaps of the reference distort its spectrum, and that of the model is distorted alike, as for D_H
    generated = np.where(np.isnan(reference), np.nan, generated)
    chosen = Coordinates.of(reference, run.columns, _COORDINATES)
    made, true = (power_spectrum(chosen(x))[shown] for x in (generated, reference))
    traces, rows = [], []
    for i, column in enumerate(chosen.names):
        for words, values, dash in (("reference", true[:, i], "dot"), ("model", made[:, i], "solid")):
            name = f"{column}, {words}"
            # what has no power has no logarithm
            drawn = typed_array(np.where(values > 0, values, np.nan))
            trace = line(typed_array(frequencies), drawn, name, colour(i))
            traces.append(trace | {"line": {"color": colour(i), "width": 1.5, "dash": dash}})
        rows += [
            (column, *row)
            for row in zip(frequencies.tolist(), true[:, i].tolist(), made[:, i].tolist(), strict=True)
        ]
    unit = "cycles per step" if run.dt is None else "cycles per unit of time"
    peaks = [
        f"{column} at {number(float(frequencies[true[:, i].argmax()]))} (model "
        f"{number(float(frequencies[made[:, i].argmax()]))})"
        for i, column in enumerate(chosen.names)
    ]
    distance = f"Their distance is D_H = {number(card.hard.spectrum_distance)}. {chosen.note}"
    header = ("coordinate", "frequency", "reference", "model")
    return Figure(
        key,
        "Power spectra",
        f"Most power, in {unit}: {', '.join(peaks)}. {distance}".strip(),
        tuple(traces),
        {"xaxis": log_axis(unit, frequencies), "yaxis": log_axis("power", np.concatenate([true, made]))},
        downloads=(csv_download("power.csv", header, rows),),
    )
