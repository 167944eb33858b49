"""`palrnn tune`: fine-tune a model by windowed evidence, and see what that does to its dynamics."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

if TYPE_CHECKING:
    from palrnn.cli.tune_run import TuneRun
    from palrnn.tuning import SAEMResult

_DATA, _TUNING = "Model and data", "Tuning (the defaults are the paper's)"
_BETAS = (5.0, 20.0, 50.0, 100.0, 200.0, 500.0, 2000.0)


def _option(words: str, panel: str) -> Any:
    return typer.Option(help=words, rich_help_panel=panel, show_default=False)


@app.command("tune", epilog="Example: palrnn tune run/ lorenz63 --configuration calib -o tuned/")
def tune_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the run; made if missing.")],
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint, or a run folder that holds one.")],
    series: Annotated[
        str,
        typer.Argument(
            help="A file (.csv .npy .npz .parquet; time in rows), or lorenz63, the data of the paper."
        ),
    ],
    configuration: Annotated[
        str | None,
        _option(
            "What is updated: baseline (nothing), calib (noise), full (noise and drift), anchored (both, "
            "with the teacher-forcing loss beside); or compare: all of them (full).",
            _TUNING,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as TOML; options on the command line win over them.")
    ] = None,
    length: Annotated[int | None, _option("Steps per window (32).", _TUNING)] = None,
    iterations: Annotated[int | None, _option("Iterations (8).", _TUNING)] = None,
    windows: Annotated[int | None, _option("Windows per iteration (80).", _TUNING)] = None,
    particles: Annotated[int | None, _option("Particles of the filter (256).", _TUNING)] = None,
    paths: Annotated[int | None, _option("Smoothing samples per window (8).", _TUNING)] = None,
    ridge: Annotated[float | None, _option("Ridge of the drift's regression (0.01).", _TUNING)] = None,
    blend: Annotated[float | None, _option("Part of a solution taken over (0.25).", _TUNING)] = None,
    target: Annotated[str | None, _option("The filter's target, paper or exact (paper).", _TUNING)] = None,
    beta: Annotated[
        list[float] | None,
        _option("Weight of the teacher-forcing loss (100); several for a comparison.", _TUNING),
    ] = None,
    tau: Annotated[int | None, _option("Steps between its forcings (as trained, or 16).", _TUNING)] = None,
    evaluate_every: Annotated[
        int | None, _option("Iterations between held-out evaluations (before and after only).", _TUNING)
    ] = None,
    heldout_windows: Annotated[int | None, _option("Held-out windows (120).", _TUNING)] = None,
    seed: Annotated[int | None, _option("Seed of windows, filters and samples (0).", _TUNING)] = None,
    process_std: Annotated[
        float | None, _option("Process noise to start from (the checkpoint's, or 0.1).", _DATA)
    ] = None,
    observation_std: Annotated[
        float | None, _option("Observation noise to start from (the checkpoint's, or 0.1).", _DATA)
    ] = None,
    gate_std: Annotated[float | None, _option("Gate noise (the checkpoint's, or 0.7).", _DATA)] = None,
    standardize: Annotated[
        str | None,
        _option("Coordinates: checkpoint, or pooled over the data, as in the paper (checkpoint).", _DATA),
    ] = None,
    test_fraction: Annotated[float | None, _option("Last part of a file, held out (0.2).", _DATA)] = None,
    data_seed: Annotated[int | None, _option("Seed of simulated data (0).", _DATA)] = None,
    reference_lyapunov: Annotated[
        float | None, _option("The largest true exponent (lorenz63: 0.9056).", _DATA)
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads (default: one per core).")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Fine-tune a model by the evidence of windows. The same command again continues where it stopped.

    The folder receives checkpoint.safetensors, history.csv, before_after.png and config.toml. With
    `--configuration compare`, each configuration has a folder in it, and comparison.csv and tradeoff.png show
    them side by side.
    """
    from palrnn.cli.tune_run import prepared_run, remember

    given = {name: value for name, value in locals().items() if value is not None}
    for name in ("output", "config", "json", "quiet", "threads", "prepared_run", "remember"):
        given.pop(name, None)
    given["checkpoint"] = str(checkpoint / "checkpoint.safetensors" if checkpoint.is_dir() else checkpoint)
    together = given.get("configuration") == "compare"
    betas = given.pop("beta", None)
    if together:
        given.pop("configuration")
    elif betas:
        if len(betas) > 1:
            raise ValueError("several --beta are for --configuration compare")
        given["beta"] = betas[0]
    voice = Voice(json, quiet)
    voice.compiling()
    run = prepared_run(config, given)
    remember(run.settings, output)
    (_compared if together else _tuned)(run, output, voice, threads, betas or list(_BETAS))


def _tuned(run: TuneRun, output: Path, voice: Voice, threads: int | None, _: list[float]) -> None:
    from palrnn.tuning import saem

    how = run.settings.saem
    voice.say(
        f"{how.configuration}: {how.iterations} iterations on {how.windows} windows of {how.length} steps"
    )
    result = saem(
        run.model,
        run.train,
        how,
        seed=run.settings.source.seed,
        heldout=run.heldout,
        reference=run.reference,
        progress=voice.progress("tuning"),
        threads=threads,
        run=output,
        standardizer=run.standardizer,
    )
    _written(run, result, output)
    rows = result.history.rows
    values = {
        "output": str(output),
        "seconds": result.seconds,
        "before": _plain(rows[0]),
        "after": _plain(rows[-1]),
    }
    words = [f"{'':18s} {'before':>9s} {'after':>9s}"]
    for name, label in _SHOWN.items():
        words.append(f"{label:18s} {rows[0][name]:9.4f} {rows[-1][name]:9.4f}")
    diverged = rows[-1]["diverged_at"]
    if not math.isnan(diverged):
        words.append(f"the tuned model's free run diverges after {diverged:.0f} steps")
    words.append(f"wrote {output}/checkpoint.safetensors, history.csv, before_after.png, config.toml")
    voice.result(values, "\n".join(words))


_SHOWN = {
    "heldout_evidence": "held-out evidence",
    "dstsp": "D_stsp",
    "lyapunov": "Lyapunov exponent",
    "sampled_dstsp": "D_stsp, sampled",
    "process_std": "process noise",
    "observation_std": "observation noise",
}


def _compared(run: TuneRun, output: Path, voice: Voice, threads: int | None, betas: list[float]) -> None:
    from palrnn.engine.style import save_figure
    from palrnn.model import save_checkpoint
    from palrnn.report.tuning_figures import tradeoff_figure
    from palrnn.tuning import compare, comparison_configs

    if run.reference is None:
        raise ValueError("a comparison needs a held-out part without missing values, for the invariants")
    found = compare(
        run.model,
        run.train,
        comparison_configs(run.settings.saem, betas),
        heldout=run.heldout,
        reference=run.reference,
        seed=run.settings.source.seed,
        progress=voice.progress("tuning"),
        threads=threads,
        run=output,
        standardizer=run.standardizer,
    )
    found.to_csv(output / "comparison.csv")
    save_figure(tradeoff_figure(found), output / "tradeoff.png")
    for name, result in found.results.items():
        _written(run, result, output / name)
    chosen = found.chosen
    if chosen is not None:
        model = found.results[chosen].model
        save_checkpoint(
            output / "checkpoint.safetensors", model, standardizer=run.standardizer, dt=run.settings.saem.dt
        )
    rows = {name: _plain(found.row(name)) for name in found.results}
    ending = (
        f"chosen: {chosen}, written to {output}/checkpoint.safetensors"
        if chosen
        else "no anchored model kept the dynamics: try a greater --beta"
    )
    voice.result({"output": str(output), "rows": rows, "chosen": chosen}, f"{found.table()}\n{ending}")


def _written(run: TuneRun, result: SAEMResult, folder: Path) -> None:
    """Write history.csv and before_after.png; the checkpoint is there already."""
    from palrnn.engine.style import save_figure
    from palrnn.invariants import free_run
    from palrnn.report.tuning_figures import before_after_figure

    result.history.to_csv(folder / "history.csv")
    how, pictures = result.config, {}
    if run.reference is not None:
        x1, span = run.reference[0], (how.rollout_steps - how.rollout_discard, how.rollout_discard)
        pictures = {
            "Reference": run.reference,
            "Before, hard gates": free_run(run.model.drift, x1, *span).observed,
            "After, hard gates": free_run(result.model.drift, x1, *span).observed,
            "After, sampled": free_run(result.model, x1, *span).observed,
        }
    raw = {title: run.standardizer.inverse(x) for title, x in pictures.items()}
    figure = before_after_figure(result.history, raw, reference_lyapunov=how.reference_lyapunov)
    save_figure(figure, folder / "before_after.png")


def _plain(row: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in row.items()}
