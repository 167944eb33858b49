"""`palrnn evaluate`: is it the same dynamical system? Each number beside its floor or reference value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.settings import ConfigFile, options_of, write_settings
from palrnn.cli.terminal import listing

#: What `--bars` stands for where no method follows it.
RECOMMENDED = "recommended"


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
    exponents: Annotated[
        int | None, typer.Option(help="How many Lyapunov exponents (as many as their dimension takes).")
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Pairs of true stretches behind each floor (20).")] = None,
    long_steps: Annotated[
        int | None, typer.Option(help="Steps of the runs that show whether the model lives (100000).")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="How D_stsp is counted: paper, alrnn-python or gtf (paper).")
    ] = None,
    bars: Annotated[
        str | None,
        typer.Option(
            help="Error bars, by reflected unless told: or varied, blocks, denoised, seeds (models are "
            "trained, and kept in the run's folder), likelihood, observed, sandwich, temperature, laplace."
        ),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Models behind each error bar (reflected, varied: 10; blocks: 50; 20).")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that train models of error bars (one per core).")
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
    for name, given in (("draws", draws), ("workers", workers)):
        if given is not None and bars is None:
            raise ValueError(f"--{name} are those of --bars, which is not given")
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
    parts: list[Any] = [*verdict_lines(card, verdict), invariants_table([card], reference=compared)]
    if bars is not None:
        how: dict[str, Any] = {"seed": settings.seed} | ({} if draws is None else {"count": draws})
        how |= {"workers": workers, "announce": voice.say, "progress": voice.progress("error bars")}
        found = result.bars(None if bars == RECOMMENDED else bars, **how)
        values["bars"] = found.to_dict()
        rows = [
            (name, value, *found.interval(name))
            for name, value in zip(found.names, found.values, strict=True)
        ]
        parts += [
            f"90 % intervals over {len(found.draws)} models by {found.method}:",
            listing(("figure", "model", "from", "to"), rows),
        ]
    voice.result(values, *parts)
