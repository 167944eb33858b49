"""`palrnn filter`: which gates were open, and how likely is the series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app, option, wrote
from palrnn.cli.settings import ConfigFile, options_of, write_settings

_SEGMENT, _NOISE, _FILTER = "The segment", "The PAL-RNN (in standardised units, per step)", "The filter"


@app.command("filter", epilog="Example: palrnn filter run/ held-out.csv --steps 1000 -o filter/")
def filter_command(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a checkpoint.")],
    series: Annotated[
        Path | None,
        typer.Argument(help="A series in raw units; empty cells were not observed (the held-out part)."),
    ] = None,
    output: OutputFolder = "filter",
    start: Annotated[
        int | None, option("The first row; it starts the filter and is not scored (0).", _SEGMENT)
    ] = None,
    steps: Annotated[int | None, option("Rows after the first (all).", _SEGMENT)] = None,
    process_std: Annotated[float | None, option("Process noise (the model's, or 0.1).", _NOISE)] = None,
    observation_std: Annotated[
        float | None, option("Observation noise (the model's, or 0.1).", _NOISE)
    ] = None,
    gate_std: Annotated[float | None, option("Gate noise (the model's, or 0.7).", _NOISE)] = None,
    particles: Annotated[int | None, option("Particles (256).", _FILTER)] = None,
    target: Annotated[str | None, option("What the filter targets: paper or exact (paper).", _FILTER)] = None,
    resampling: Annotated[str | None, option("The scheme of resampling (multinomial).", _FILTER)] = None,
    ess_threshold: Annotated[
        float | None, option("Resample when ESS / particles is below (0.5).", _FILTER)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of everything random (0).")] = None,
    config: ConfigFile = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Infer the gates of a model on a series, with a Rao-Blackwellised particle filter.

    The folder receives filter.csv, one line for each row that was scored, diagnostics.png and
    the settings, filter.toml.
    """
    from palrnn.engine.folders import check_folder, writable_folder
    from palrnn.inference import FilterDiagnostics
    from palrnn.report.filter_figures import save_filter
    from palrnn.report.sections.filter import filter_table
    from palrnn.runs import FilterSettings, Reconstruction

    voice = Voice(json, quiet)
    voice.compiling()
    check_folder(output, "filter")
    settings = FilterSettings(**options_of(context, FilterSettings))
    result = Reconstruction.load(run, reference=series).with_noise(process_std, observation_std, gate_std)
    settings = settings.settled(result.x)
    found = result.filter(settings, progress=voice.progress("filter"))
    with writable_folder(output, "filter", "filter") as folder:
        save_filter(found, folder, start=settings.start)
        write_settings(context, folder / "filter.toml", settings)
    health = FilterDiagnostics.of(found, settings.paths)
    voice.result({"output": output, **health.to_dict()}, filter_table(health), wrote(output))
