"""`palrnn train`: from a series to a trained model, with its history and verdict."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app, option, wrote
from palrnn.cli.options import (
    SERIES,
    Columns,
    DataSeed,
    Inputs,
    ObservationNoise,
    ProcessNoise,
    Steps,
    TimeStep,
    TrialColumn,
    input_names,
)

if TYPE_CHECKING:
    from palrnn.data import Dataset
    from palrnn.forcing import TrainConfig

_TRAINING = "Training"


def _preset(name: str) -> Any:
    from palrnn.engine.checks import one_of
    from palrnn.forcing import TrainConfig

    presets = {"paper": TrainConfig.paper}
    return presets[one_of(name, "preset", presets)]()


@app.command("train", epilog="Example: palrnn train lorenz63 --process-std 0.1 --observation-std 0.1 -o run/")
def train_command(
    output: OutputFolder,
    series: Annotated[
        str | None,
        typer.Argument(
            help="A file (.csv .txt .tsv .npy .npz .mat .h5 .edf .parquet; time in rows; file.mat::name for "
            "one array of several), or a system to simulate: lorenz63, rossler, lorenz96. May be left out to "
            "continue the run in the output folder.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as TOML; options on the command line win over them.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings of training by name: paper. Other options win over them.")
    ] = None,
    steps: Steps = None,
    dt: TimeStep = None,
    process_std: ProcessNoise = None,
    observation_std: ObservationNoise = None,
    data_seed: DataSeed = None,
    test_fraction: Annotated[
        float | None, option("Last part, held out for tests (0.2); of several trials, the last.", SERIES)
    ] = None,
    columns: Columns = None,
    inputs: Inputs = None,
    time: Annotated[
        str | None,
        option(
            "The column that tells the time (one that looks like it); with --dt, rows are put on that grid.",
            SERIES,
        ),
    ] = None,
    trial: TrialColumn = None,
    lags: Annotated[
        int | None,
        option("The present and so many - 1 past values (1: off; chosen for one column).", SERIES),
    ] = None,
    delay: Annotated[int | None, option("Steps between these (chosen from the data).", SERIES)] = None,
    latent_dim: Annotated[
        int | None, option("Latent units M (60, or more for many columns).", _TRAINING)
    ] = None,
    gated: Annotated[int | None, option("Gated units P (40).", _TRAINING)] = None,
    hidden: Annotated[int | None, option("Hidden units of a shallow family.", _TRAINING)] = None,
    tau: Annotated[int | None, option("Steps between forcings (chosen from the data).", _TRAINING)] = None,
    alpha: Annotated[
        float | None, option("Forcing strength, 0 to 1 (1; of short series and past values 0.1).", _TRAINING)
    ] = None,
    final_alpha: Annotated[
        float | None, option("Its value at the end of training (as alpha).", _TRAINING)
    ] = None,
    family: Annotated[
        str | None, option("alrnn, shallow or clipped-shallow (alrnn; of short series shallow).", _TRAINING)
    ] = None,
    updates: Annotated[int | None, option("Updates (30000).", _TRAINING)] = None,
    batch_size: Annotated[int | None, option("Sequences per update (16).", _TRAINING)] = None,
    sequence_length: Annotated[int | None, option("Rows per sequence (200).", _TRAINING)] = None,
    learning_rate: Annotated[float | None, option("First learning rate (0.003).", _TRAINING)] = None,
    final_learning_rate: Annotated[float | None, option("Last learning rate (0.00001).", _TRAINING)] = None,
    gradient_clip: Annotated[float | None, option("Longest gradient (5).", _TRAINING)] = None,
    optimizer: Annotated[
        str | None, option("soap or radam (soap; of short series radam).", _TRAINING)
    ] = None,
    input_noise: Annotated[
        float | None, option("Noise on forcing inputs (as in the data, 0.02 to 0.05).", _TRAINING)
    ] = None,
    seed: Annotated[int | None, option("Seed of the model and its batches (0).", _TRAINING)] = None,
    evaluate_every: Annotated[
        int | None,
        option("Updates between measurements of the free run (a tenth of many).", _TRAINING),
    ] = None,
    keep: Annotated[
        str | None,
        option("The model to keep, `last` or `best` measured (best of many).", _TRAINING),
    ] = None,
    polish: Annotated[
        int | None,
        option(
            "Rounds of polishing a model whose long runs end, 0 for none (16 of many updates).", _TRAINING
        ),
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train a surrogate by teacher forcing. The same command again continues where the run stopped.

    The folder receives checkpoint.safetensors, history.csv, reference.npy (with inputs.npy where columns
    drive the system) and config.toml.
    """
    given = {name: value for name, value in locals().items() if value is not None and value != []}
    for name in ("output", "config", "preset", "series", "json", "quiet"):
        given.pop(name, None)
    if inputs is not None:
        given["inputs"] = input_names(inputs)
    from palrnn.report.sections.invariants import invariants_table, verdict_lines
    from palrnn.runs import RunRecord, reconstruct

    voice, begun = Voice(json, quiet), clock.monotonic()
    voice.compiling()
    if preset is not None:
        if config is not None:
            raise ValueError("give --preset or --config, not both")
        given = {"config": _preset(preset)} | given
    if config is not None:
        file = RunRecord.read(config, series=series)
        data = {} if file.data is None else file.data.model_dump(exclude_unset=True)
        series = data.pop("series", None)
        given = data | {"config": file.training} | given
    listener = voice.progress("training")
    result = reconstruct(
        series,
        run=output,
        progress=listener,
        on_data=lambda data, chosen: voice.say("\n".join([repr(data), *_chosen(data, chosen)])),
        **given,
    )
    seconds, loss = clock.monotonic() - begun, result.losses[-1][1]
    card, verdict = result.invariants(), result.verdict()
    values = {"output": output, "updates": result.losses[-1][0], "seconds": seconds, "loss": loss}
    words = f"trained {result.model} with {result.forcing} in {seconds:.1f} s; the last loss is {loss:.4g}"
    if done := result.record.run.polish:
        values["polish"] = done
        words += f"; polishing: {done}"
    values |= card.to_dict() | {"verdict": verdict.to_dict()}
    voice.result(values, words, invariants_table([card]), *verdict_lines(card, verdict), wrote(output))


def _chosen(data: Dataset, config: TrainConfig) -> list[str]:
    """Return the lines that say what training takes from the data, and why."""
    forcing, remembered = config.forcing, data.suggested_tau
    when = "every step" if forcing.interval == 1 else f"every {forcing.interval} steps (tau)"
    words = f"{when}, by {forcing.strength:g} of the way" if forcing.strength < 1 else when
    if forcing.strength == 1 and forcing.interval == remembered:
        words += ": as long as the part to train on remembers itself"
    lines = [f"  {'forcing':<9}{words}"]
    usual, length = type(config)().sequence_length, config.sequence_length
    if length == min(map(len, data.training)) < usual:
        lines.append(f"  {'length':<9}{length} rows per sequence, the shortest trial, instead of {usual}")
    return lines
