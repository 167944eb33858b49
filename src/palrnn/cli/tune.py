"""`palrnn tune`: fine-tune a model by windowed evidence, and see what that does to its dynamics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app, option, wrote

_DATA, _TUNING = "Model and data", "Tuning (the defaults are the paper's)"
_BETAS = (5.0, 20.0, 50.0, 100.0, 200.0, 500.0, 2000.0)


@app.command("tune", epilog="Example: palrnn tune run/ --configuration calib -o tuned/")
def tune_command(
    output: OutputFolder,
    run: Annotated[
        Path | None, typer.Argument(help="The folder of a run, or a checkpoint (that of --config).")
    ] = None,
    series: Annotated[
        str | None,
        typer.Argument(
            help="A file, as for train, or lorenz63, the data of the paper. "
            "Without it, the first half of the run's held-out part tunes, and the second judges."
        ),
    ] = None,
    configuration: Annotated[
        str | None,
        option(
            "What is updated: baseline (nothing), calib (noise), full (noise and drift), anchored (both, "
            "with the teacher-forcing loss beside); or compare: all of them (full).",
            _TUNING,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as TOML; options on the command line win over them.")
    ] = None,
    length: Annotated[int | None, option("Steps per window (32).", _TUNING)] = None,
    iterations: Annotated[int | None, option("Iterations (8).", _TUNING)] = None,
    windows: Annotated[int | None, option("Windows per iteration (80).", _TUNING)] = None,
    particles: Annotated[int | None, option("Particles of the filter (256).", _TUNING)] = None,
    paths: Annotated[int | None, option("Smoothing samples per window (8).", _TUNING)] = None,
    ridge: Annotated[float | None, option("Ridge of the drift's regression (0.01).", _TUNING)] = None,
    blend: Annotated[float | None, option("Part of a solution taken over (0.25).", _TUNING)] = None,
    target: Annotated[str | None, option("The filter's target, paper or exact (paper).", _TUNING)] = None,
    beta: Annotated[
        list[float] | None,
        option("Weight of the teacher-forcing loss (100); several for a comparison.", _TUNING),
    ] = None,
    tau: Annotated[int | None, option("Steps between its forcings (as trained, or 16).", _TUNING)] = None,
    evaluate_every: Annotated[
        int | None, option("Iterations between held-out evaluations (before and after only).", _TUNING)
    ] = None,
    heldout_windows: Annotated[int | None, option("Held-out windows (120).", _TUNING)] = None,
    seed: Annotated[int | None, option("Seed of windows, filters and samples (0).", _TUNING)] = None,
    process_std: Annotated[
        float | None, option("Process noise to start from (the checkpoint's, or 0.1).", _DATA)
    ] = None,
    observation_std: Annotated[
        float | None, option("Observation noise to start from (the checkpoint's, or 0.1).", _DATA)
    ] = None,
    gate_std: Annotated[float | None, option("Gate noise (the checkpoint's, or 0.7).", _DATA)] = None,
    standardize: Annotated[
        str | None,
        option("Coordinates: checkpoint, or pooled over the data, as in the paper (checkpoint).", _DATA),
    ] = None,
    test_fraction: Annotated[float | None, option("Last part of a file, held out (0.2).", _DATA)] = None,
    data_seed: Annotated[int | None, option("Seed of simulated data (0).", _DATA)] = None,
    reference_lyapunov: Annotated[
        float | None, option("The largest true exponent (lorenz63: 0.9056).", _DATA)
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads (default: one per core).")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Fine-tune a model by the evidence of windows. The same command again continues where it stopped.

    The folder receives checkpoint.safetensors, history.csv, before_after.png, reference.npy and config.toml.
    With `--configuration compare`, each configuration has a folder in it, and comparison.csv and tradeoff.png
    show them side by side.
    """
    given = {name: value for name, value in locals().items() if value is not None and value != []}
    for name in ("output", "run", "config", "json", "quiet", "threads", "configuration", "beta"):
        given.pop(name, None)
    from palrnn.report.sections.evidence import evidence_table
    from palrnn.report.sections.invariants import verdict_lines
    from palrnn.runs import Reconstruction, RunFolder, RunRecord, TuningSettings, TuningTask
    from palrnn.tuning import Comparison

    voice = Voice(json, quiet)
    voice.compiling()
    RunFolder(output).check()
    file = RunRecord() if config is None else RunRecord.read(config)
    plan = file.comparison or TuningSettings(task=file.tuning or TuningTask(), betas=_BETAS)
    together = configuration == "compare" or (configuration is None and file.comparison is not None)
    source = run or plan.task.checkpoint
    if source is None:
        raise ValueError("RUN must be given: the folder of a run, or a checkpoint")
    result = Reconstruction.load(source)
    how: dict[str, Any] = {"run": output, "threads": threads, "progress": voice.progress("tuning"), **given}
    if together:
        found = result.tuning(plan.changed(betas=tuple(beta)) if beta else plan, **how)
    else:
        if beta and len(beta) > 1:
            raise ValueError("several --beta are for --configuration compare")
        how |= {"beta": beta[0]} if beta else {}
        tuned = result.tune(configuration or plan.task.saem.configuration, plan.task, **how)
        assert tuned.saem is not None
        found = Comparison.of(tuned.saem)
    ending, judged = wrote(output), None if together else tuned
    if together:
        choice = "no anchored model kept the dynamics: try a greater --beta"
        ending += f"; {choice if found.chosen is None else f'chosen: {found.chosen}'}"
        if found.chosen is not None:
            judged = Reconstruction.load(output)  # on the scale that it was tuned on
    values, lines = {"output": output, **found.to_dict()}, list[str]()
    # a checkpoint alone has nothing to be judged against
    if judged is not None and (result.reference is not None or result.system is not None):
        card = judged.invariants()
        values["verdict"], lines = card.verdict.to_dict(), verdict_lines(card, card.verdict)
    voice.result(values, evidence_table(found), *lines, ending)
