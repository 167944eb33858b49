"""`palrnn demo`: the main job from nothing to a report, in a few minutes."""

from __future__ import annotations

import textwrap
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app

_STEPS = 60_000
_TAU = 16


@app.command("demo", epilog="Example: palrnn demo -o demo/")
def demo_command(
    output: OutputFolder = "demo",
    updates: Annotated[int, typer.Option(help="Updates of training; more make a better model.")] = 25_000,
    whole: Annotated[
        bool, typer.Option("--whole", help="Also compare the two geometries, which takes half a minute more.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings of the analyses as TOML: [invariants] [filter] [geometry] [tuning]."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Reconstruct Lorenz-63 from a simulated series, and write a report about the result.

    Simulate, train by teacher forcing, judge the invariants, filter and smooth the gates, calibrate and tune
    by evidence; with --whole also compare the two geometries. The folder receives the run and report.html.
    """
    from palrnn.cli.report import report_view
    from palrnn.forcing import TrainConfig
    from palrnn.report.document import write_report
    from palrnn.report.registry import headlines
    from palrnn.runs import ReportSettings, RunFolder, TuningSettings, TuningTask, reconstruct
    from palrnn.tuning import SAEMConfig

    voice, begun = Voice(json, quiet), time.monotonic()
    voice.compiling()
    # before anything long, so that a mistake in the file is told at once
    small = SAEMConfig(iterations=6, windows=32, particles=128, heldout_windows=40)
    settings = ReportSettings(tuning=TuningSettings(task=TuningTask(saem=small)))
    settings = (settings if config is None else ReportSettings.from_toml(config)).with_seed(seed)
    folder = RunFolder(output)
    folder.check()
    page = folder.path / "report.html"
    voice.say(f"simulating {_STEPS} steps of Lorenz-63")
    result = reconstruct(
        "lorenz63",
        steps=_STEPS,
        tau=_TAU,
        updates=updates,
        config=TrainConfig.paper(),
        seed=seed,
        data_seed=seed,
        name="Lorenz-63 demo",
        run=output,
        progress=voice.progress("training"),
    )
    run = report_view(result, settings, voice, () if whole else ("geometry",))
    write_report([run], page, settings=settings)
    cards, seconds = headlines(run), time.monotonic() - begun
    values = {"report": page, "seconds": round(seconds, 1), "headlines": [asdict(card) for card in cards]}
    lines = []
    # the verdict last: that is what is read first, above the prompt
    for card in (*cards[1:], cards[0]):
        lines.append(f"{card.label}: {card.value} {card.unit}".rstrip())
        lines.append(textwrap.fill(card.sentence, 100, initial_indent="    ", subsequent_indent="    "))
    if not whole:
        voice.say("without the two geometries, which take half a minute more (--whole)")
    voice.result(values, *lines, "", f"report: {page} ({seconds:.0f} s; open it in a browser)")
