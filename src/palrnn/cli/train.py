"""`palrnn train`: from a series to a trained model, with its history and a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

if TYPE_CHECKING:
    from palrnn.cli.train_run import TrainRun
    from palrnn.forcing import TrainResult

_DATA, _TRAINING = "The series", "Training (the defaults are the paper's)"


def _number(words: str, panel: str) -> Any:
    return typer.Option(help=words, rich_help_panel=panel, show_default=False)


@app.command("train", epilog="Example: palrnn train lorenz63 --process-std 0.1 --observation-std 0.1 -o run/")
def train_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the run; made if missing.")],
    series: Annotated[
        str | None,
        typer.Argument(
            help="A file (.csv .npy .npz .parquet; time in rows), or a system to simulate: lorenz63, "
            "rossler, lorenz96. May be left out to continue the run in the output folder.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as TOML; options on the command line win over them.")
    ] = None,
    steps: Annotated[int | None, _number("Steps to simulate, test part included (100000).", _DATA)] = None,
    dt: Annotated[
        float | None, _number("Time per step (simulated: the system's usual; files: 1).", _DATA)
    ] = None,
    process_std: Annotated[float | None, _number("Process noise of a simulated system (0).", _DATA)] = None,
    observation_std: Annotated[
        float | None, _number("Observation noise on the training part of a simulated series (0).", _DATA)
    ] = None,
    data_seed: Annotated[int | None, _number("Seed of the simulated series (0).", _DATA)] = None,
    test_fraction: Annotated[
        float | None, _number("Last part, held out for tests (0.2); of several trials, the last.", _DATA)
    ] = None,
    columns: Annotated[
        list[str] | None, _number("A column of a table to use; once per column (all but time).", _DATA)
    ] = None,
    trial: Annotated[str | None, _number("The column that tells trials apart (trial).", _DATA)] = None,
    lags: Annotated[
        int | None, _number("Delay embedding: the present and so many - 1 past values (1: off).", _DATA)
    ] = None,
    delay: Annotated[int | None, _number("Steps between these (chosen from the data).", _DATA)] = None,
    latent_dim: Annotated[int | None, _number("Latent units M (30).", _TRAINING)] = None,
    gated: Annotated[int | None, _number("Gated units P (10).", _TRAINING)] = None,
    tau: Annotated[
        int | None, _number("Steps between forcings (files: chosen from the data; 16).", _TRAINING)
    ] = None,
    alpha: Annotated[float | None, _number("Forcing strength, 0 to 1 (1).", _TRAINING)] = None,
    updates: Annotated[int | None, _number("Updates (100000).", _TRAINING)] = None,
    batch_size: Annotated[int | None, _number("Sequences per update (16).", _TRAINING)] = None,
    sequence_length: Annotated[int | None, _number("Rows per sequence (200).", _TRAINING)] = None,
    learning_rate: Annotated[float | None, _number("First learning rate (0.001).", _TRAINING)] = None,
    final_learning_rate: Annotated[float | None, _number("Last learning rate (0.00001).", _TRAINING)] = None,
    gradient_clip: Annotated[float | None, _number("Longest gradient (no limit).", _TRAINING)] = None,
    input_noise: Annotated[float | None, _number("Noise on forcing inputs (0).", _TRAINING)] = None,
    seed: Annotated[int | None, _number("Seed of the model and its batches (0).", _TRAINING)] = None,
    evaluate_every: Annotated[
        int | None, _number("Updates between measurements of the free-running model (never).", _TRAINING)
    ] = None,
    keep: Annotated[
        str | None, _number("The model to keep, `last` or `best` measured (last).", _TRAINING)
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train an AL-RNN by teacher forcing. The same command again continues where the run stopped.

    The folder receives checkpoint.safetensors, history.csv, loss.png, reference.npy and config.toml.
    """
    from palrnn.cli.train_run import prepared_run

    given = {name: value for name, value in locals().items() if value is not None and value != []}
    for name in ("output", "config", "json", "quiet", "prepared_run"):
        given.pop(name, None)
    voice = Voice(json, quiet)
    voice.compiling()
    run = prepared_run(output, config, given)
    voice.say(f"{run.data.series}: training on {run.steps} steps, testing on {len(run.heldout)}")
    result = run.train(voice.progress("training"))
    _report(run, result, voice)


def _report(run: TrainRun, result: TrainResult, voice: Voice) -> None:
    from palrnn.engine.style import save_figure
    from palrnn.report.training_figures import training_figure

    evaluation, floor, history = run.evaluation(result), run.floor(), result.history
    history.to_csv(run.folder / "history.csv")
    median = None if floor is None else floor.median
    save_figure(training_figure(history, floor=median), run.folder / "loss.png")
    loss, seconds = history.recent_loss(), float(history.seconds.sum())
    values = {
        "output": str(run.folder),
        "updates": len(history),
        "seconds": seconds,
        "loss": loss,
        "dstsp": _finite(evaluation.dstsp),
        "dstsp_floor": median,
        "outside": evaluation.outside,
        "lyapunov": _finite(evaluation.lyapunov),
    }
    lines = [f"trained {result.model} in {seconds:.1f} s ({1e3 * seconds / len(history):.2f} ms per update)"]
    lines.append(f"loss       {loss:.4g} (mean of the last updates, summed over coordinates)")
    if math.isfinite(evaluation.dstsp):
        beside = (
            ""
            if floor is None
            else f"; true against true {floor.median:.3g} ({floor.low:.3g} to {floor.high:.3g})"
        )
        lines.append(f"D_stsp     {evaluation.dstsp:.3g} nats on the held-out part{beside}")
        unit = "step" if run.data.dt is None else "unit of time"
        lines.append(f"Lyapunov   {evaluation.lyapunov:.3g} per {unit} (largest exponent)")
    else:
        lines.append("the free-running model diverges: train longer, or with another tau")
    lines.append(f"wrote      {run.folder}/checkpoint.safetensors, history.csv, loss.png, config.toml")
    voice.result(values, "\n".join(lines))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
