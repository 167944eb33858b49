"""`palrnn report`: one HTML page about a run, or about several side by side."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

if TYPE_CHECKING:
    from palrnn.report.view import Run
    from palrnn.runs import Reconstruction, ReportSettings


@app.command("report", epilog="Example: palrnn report run/ -o report.html")
def report_command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, as `palrnn train` leaves them.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="The page to write.")
    ] = "report.html",
    title: Annotated[str, typer.Option(help="A title for the page.")] = "",
    reference: Annotated[
        Path | None,
        typer.Option(help="A series in raw units, instead of the held-out part and true system of each run."),
    ] = None,
    process_std: Annotated[
        float | None, typer.Option(help="Process noise of the probabilistic counterpart (0.1).")
    ] = None,
    observation_std: Annotated[float | None, typer.Option(help="Its observation noise (0.1).")] = None,
    gate_std: Annotated[float | None, typer.Option(help="Its gate noise (0.7).")] = None,
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Tune by evidence and compare before and after.")
    ] = True,
    quick: Annotated[
        bool | None,
        typer.Option(
            "--quick/--whole",
            help="Leave out gates, geometry and tuning, or not. They take minutes for models of more than 40 "
            "units and for other families than the AL-RNN, and are left out there unless asked for.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings as TOML: [invariants] [filter] [geometry] [tuning]."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of all analyses (0).")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Write a self-contained HTML report. Results that a run's folder lacks are computed, and kept there.

    The settings of the analyses that were given are written beside the page, as OUTPUT.toml.
    """
    from palrnn.report.document import check_report, numbers, write_report
    from palrnn.runs import Reconstruction, ReportSettings
    from palrnn.runs.view import left_out

    voice = Voice(json, quiet)
    voice.compiling()
    settings = ReportSettings() if config is None else ReportSettings.from_toml(config)
    settings = settings if seed is None else settings.with_seed(seed)
    page, _ = check_report(output, inputs=[config] if config is not None else [])
    results = [
        Reconstruction.load(folder, reference=reference).with_noise(process_std, observation_std, gate_std)
        for folder in runs
    ]
    if len({result.name for result in results}) < len(results):
        results = [result.with_name(str(folder)) for result, folder in zip(results, runs, strict=True)]
    views = []
    for result in results:
        without = left_out(result, None if quick is None else not quick)
        if without and quick is None:
            voice.say(f"{result.name}: without gates, geometry and tuning, which take minutes (--whole)")
        views.append(report_view(result, settings, voice, without if tune else (*without, "tuning")))
    write_report(views, page, title, settings)
    size = f"{page.stat().st_size / 1e6:.1f} MB, {len(views)} run{'s' * (len(views) > 1)}"
    voice.result({"report": output, "runs": [numbers(run) for run in views]}, f"wrote {output} ({size})")


_WORDS = {
    "invariants": "the invariants of a free run",
    "diagnostics": "filter and smoother over the gates",
    "geometry": "the two geometries",
    "tuning": "calibration and full tuning by evidence",
}


def report_view(
    result: Reconstruction, settings: ReportSettings, voice: Voice, without: Collection[str] = ()
) -> Run:
    """Return what the report shows of ``result``, except the analyses ``without``.

    What its folder holds already takes no time.
    """

    def announce(name: str) -> None:
        voice.say(f"{result.name}: {_WORDS.get(name, name)}")

    return result.view(settings, progress=voice.progress("tuning"), announce=announce, without=without)
