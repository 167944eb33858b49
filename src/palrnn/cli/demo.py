"""`palrnn demo`: the main job from nothing to a report, in a few minutes."""

from __future__ import annotations

import textwrap
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

_STEPS, _SETTLE = 60_000, 10_000
_TAU = 16


@app.command("demo", epilog="Example: palrnn demo -o demo/")
def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
    updates: Annotated[int, typer.Option(help="Updates of training; more make a better model.")] = 25_000,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings of the analyses as TOML: [judge] [filter] [geometry] [tune]."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Reconstruct Lorenz-63 from a simulated series, and write a report about the result.

    Simulate, train by teacher forcing, judge the invariants, filter and smooth the gates, compare the two
    geometries, calibrate and tune by evidence. The folder receives the run and report.html.
    """
    from palrnn.cli.analysing import analysed
    from palrnn.data import lorenz63
    from palrnn.report.document import headlines, write_report
    from palrnn.runs import ReportSettings, TuneSettings, reconstruct

    voice, begun = Voice(json, quiet), time.monotonic()
    voice.compiling()
    # before anything long, so that a mistake in the file is told at once
    small = ReportSettings(tune=TuneSettings(iterations=6, windows=32, heldout_windows=40))
    settings = (small if config is None else ReportSettings.from_toml(config)).seeded(seed)
    output.mkdir(parents=True, exist_ok=True)
    voice.say(f"simulating {_STEPS} steps of Lorenz-63")
    x = lorenz63(_STEPS, discard=_SETTLE, seed=seed)
    result = reconstruct(
        x,
        dt=0.01,
        tau=_TAU,
        updates=updates,
        seed=seed,
        columns=("x", "y", "z"),
        name="Lorenz-63 demo",
        system="lorenz63",
        run=output,
        progress=voice.progress("training"),
    )
    run = analysed(result, settings, voice)
    page = output / "report.html"
    write_report([run], page)
    settings.to_toml(page.with_suffix(".toml"))
    cards = headlines(run)
    values = {
        "report": str(page),
        "seconds": round(time.monotonic() - begun, 1),
        "headlines": [asdict(card) for card in cards],
    }
    lines = []
    for card in cards:
        lines.append(f"{card.label}: {card.value} {card.unit}".rstrip())
        lines.append(textwrap.fill(card.sentence, 100, initial_indent="    ", subsequent_indent="    "))
    spent = f"{time.monotonic() - begun:.0f} s"
    voice.result(values, "\n".join([*lines, "", f"report: {page} ({spent}; open it in a browser)"]))
