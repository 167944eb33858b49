"""`palrnn geometry`: the curvature of teacher forcing and of the marginal likelihood, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app, option, wrote
from palrnn.cli.settings import ConfigFile, options_of, write_settings

_SEGMENT, _NOISE = "The segment and the forcing", "The PAL-RNN (in standardised units, per step)"
_BUDGET, _USE = "Filter and smoother", "Error bars on the dynamics"


@app.command("geometry", epilog="Example: palrnn geometry run/ held-out.csv --paths 256 -o geometry/")
def geometry_command(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a checkpoint.")],
    series: Annotated[
        Path | None, typer.Argument(help="A series in raw units (the held-out part of the run).")
    ] = None,
    output: OutputFolder = "geometry",
    start: Annotated[int | None, option("The first row of the segment (0).", _SEGMENT)] = None,
    steps: Annotated[int | None, option("Its length T (200).", _SEGMENT)] = None,
    tau: Annotated[int | None, option("Steps between forcings (as trained, or 16).", _SEGMENT)] = None,
    alpha: Annotated[float | None, option("Forcing strength (as trained, or 1).", _SEGMENT)] = None,
    process_std: Annotated[float | None, option("Process noise (the model's, or 0.1).", _NOISE)] = None,
    observation_std: Annotated[
        float | None, option("Observation noise (the model's, or 0.1).", _NOISE)
    ] = None,
    gate_std: Annotated[float | None, option("Gate noise (the model's, or 0.7).", _NOISE)] = None,
    preset: Annotated[
        str, option("exact given the gates, or paper: its eight sampled states (exact).", _BUDGET)
    ] = "exact",
    particles: Annotated[int | None, option("Particles of the filter (256).", _BUDGET)] = None,
    passes: Annotated[int | None, option("Independent passes of the filter (4).", _BUDGET)] = None,
    paths: Annotated[int | None, option("Gate paths drawn from each (12).", _BUDGET)] = None,
    target: Annotated[str | None, option("What the filter targets: exact or paper (exact).", _BUDGET)] = None,
    most_dense: Annotated[
        int | None,
        option("The most parameters of which matrices are built; traces alone above (1500).", _BUDGET),
    ] = None,
    lanczos: Annotated[
        bool | None, option("Above that, find the leading directions by Lanczos.", _BUDGET)
    ] = None,
    draws: Annotated[int, option("Models drawn from each Laplace posterior; 0 for none (32).", _USE)] = 32,
    prior_std: Annotated[
        float, option("Deviation of the Gaussian prior around the model (0.01).", _USE)
    ] = 0.01,
    seed: Annotated[int | None, typer.Option(help="The seed of everything random (0).")] = None,
    config: ConfigFile = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Compare the curvature of teacher forcing with that of the marginal likelihood, at the same model.

    The folder receives matrices.safetensors, summary.json, geometry.png, error_bars.png and the
    settings, geometry.toml. Of more than 1,500 parameters, as a model of the default size has, there
    are traces and no matrices: these take minutes, and --most-dense 4000.
    """
    from palrnn.engine.checks import one_of
    from palrnn.engine.files import write_json
    from palrnn.engine.folders import check_folder, writable_folder
    from palrnn.engine.plain import plain
    from palrnn.model import Forcing
    from palrnn.report.geometry_figures import save_geometry
    from palrnn.report.sections.geometry import error_bars_table, geometry_table
    from palrnn.runs import GeometrySettings, Reconstruction

    voice = Voice(json, quiet)
    voice.compiling()
    check_folder(output, "geometry")
    named = {"exact": GeometrySettings(), "paper": GeometrySettings.paper()}
    settings = named[one_of(preset, "--preset", named)].changed(**options_of(context, GeometrySettings))
    result = Reconstruction.load(run, reference=series).with_noise(process_std, observation_std, gate_std)
    forcing = result.forcing
    if tau is not None or alpha is not None:
        strength = forcing.strength if alpha is None else alpha
        forcing = Forcing.generalised(strength, forcing.interval if tau is None else tau).final
    settings = settings.settled(result.x)  # refuse before anything is written
    # a second writer is refused now, before it computes
    with writable_folder(output, "geometry", "geometry") as folder:
        found = result.geometry(settings, forcing=forcing, matrices=True, progress=voice.progress("geometry"))
        bars = {}
        if draws:
            voice.say(
                f"error bars: {draws} models under each geometry, prior deviation {prior_std:g}; to compare "
                "the two: bars that hold are those of palrnn evaluate --bars"
            )
            how: dict[str, Any] = {"draws": draws, "prior_std": prior_std, "seed": settings.seed}
            bars = result.error_bars(found, **how, progress=voice.progress("error bars"))
        noise = result.probabilistic
        values = {**found.to_dict(), "forcing": forcing.to_dict(), "gate_std": noise.gate_std}
        values |= {"process_std": noise.process.std, "observation_std": noise.observation.std}
        values |= {"prior_std": prior_std}
        values["error_bars"] = {name: bar.to_dict() for name, bar in bars.items()}
        save_geometry(found, bars, folder)
        write_json(folder / "summary.json", plain(values))
        write_settings(context, folder / "geometry.toml", settings)
    tables = [geometry_table([found])] + ([error_bars_table(bars, prior_std)] if bars else [])
    voice.result({"output": output, **values}, *tables, wrote(output))
