"""`palrnn evaluate`: is it the same dynamical system? Each number beside its floor or reference value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.settings import ConfigFile, options_of, write_settings


@app.command("evaluate", epilog="Example: palrnn evaluate model.safetensors --reference held-out.csv --json")
def evaluate_command(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a checkpoint.")],
    reference: Annotated[
        Path | None, typer.Option(help="A true series in raw units, instead of what the run was trained on.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="Or a simulated system: lorenz63, rossler, lorenz96.")
    ] = None,
    dt: Annotated[float | None, typer.Option(help="Time per step (the run's, or 1).")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Length of the free run and of the reference (9000).")
    ] = None,
    discard: Annotated[
        int | None, typer.Option(help="Steps left out at the start of the free run (1000).")
    ] = None,
    process_std: Annotated[
        float | None, typer.Option(help="Process noise of the simulated system (that of the data).")
    ] = None,
    lyapunov: Annotated[
        float | None, typer.Option(help="The largest true exponent, where no system tells it.")
    ] = None,
    exponents: Annotated[int | None, typer.Option(help="How many Lyapunov exponents (all).")] = None,
    pairs: Annotated[int | None, typer.Option(help="Pairs of true stretches behind each floor (20).")] = None,
    long_steps: Annotated[
        int | None, typer.Option(help="Steps of the runs that show whether the model lives (100000).")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="How D_stsp is counted: paper, alrnn-python or gtf (paper).")
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="A folder to draw the figures into.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of everything random (0).")] = None,
    config: ConfigFile = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure the invariants of a trained model against the true system, or held-out data."""
    from palrnn.engine.folders import check_folder, writable_folder
    from palrnn.report.invariants_figures import save_invariant_figures
    from palrnn.report.sections.invariants import invariants_table, reference_name, verdict_lines
    from palrnn.runs import InvariantSettings, Reconstruction

    voice = Voice(json, quiet)
    voice.compiling()
    if reference is not None and system is not None:
        raise ValueError("give --reference or --system, not both")
    if figures is not None:
        check_folder(figures, "figures")
    result = Reconstruction.load(run, reference=reference)
    result = result if system is None else result.with_system(system)
    result = result if dt is None else result.with_dt(dt)
    if result.dt is None:
        voice.say("the time step is not known: exponents are per step (or give --dt)")
    settings = InvariantSettings(**options_of(context, InvariantSettings))
    card = result.invariants(settings)
    if figures is not None:
        with writable_folder(figures, "figures", "evaluate") as folder:
            for drawn in save_invariant_figures(card, folder, dt=result.dt or 1.0):
                voice.say(f"wrote {drawn}")
            write_settings(context, folder / "evaluate.toml", settings)
    compared = reference_name(card) if reference is None else str(reference)
    verdict = result.verdict(settings)
    values = {"run": run, "reference": compared, "dt": result.dt, **card.to_dict()}
    values["verdict"] = verdict.to_dict()
    voice.result(values, *verdict_lines(card, verdict), invariants_table([card], reference=compared))
