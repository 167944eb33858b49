"""`palrnn search`: many settings tried on a series, the best model kept."""

from __future__ import annotations

import time as clock
from typing import Annotated

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

_TRAINING, _WORK = "What is tried", "The search"
_LISTED = 10


@app.command("search", epilog="Example: palrnn search data.csv --minutes 5 -o found/")
def search_command(
    output: OutputFolder,
    series: Annotated[
        str | None,
        typer.Argument(
            help="A file (.csv .txt .tsv .npy .npz .mat .h5 .edf .parquet; time in rows), or a system: "
            "lorenz63, rossler, lorenz96. May be left out to continue the search in the output folder.",
        ),
    ] = None,
    minutes: Annotated[float | None, option("About how long it may take (5).", _WORK)] = None,
    updates: Annotated[
        int | None, option("The budget as updates of all candidates together, instead.", _WORK)
    ] = None,
    candidates: Annotated[
        int | None, option("Candidates to start with (chosen with the budget).", _WORK)
    ] = None,
    seed: Annotated[int | None, option("The seed of the search (0).", _WORK)] = None,
    workers: Annotated[int | None, option("Processes on this machine (one per core).", _WORK)] = None,
    scheduler: Annotated[str | None, option("A Dask cluster at tcp://host:port instead.", _WORK)] = None,
    steps: Steps = None,
    dt: TimeStep = None,
    process_std: ProcessNoise = None,
    observation_std: ObservationNoise = None,
    data_seed: DataSeed = None,
    test_fraction: Annotated[
        float | None,
        option("Last part, held out for the verdict (0.2); of several trials, the last.", SERIES),
    ] = None,
    columns: Columns = None,
    inputs: Inputs = None,
    time: Annotated[
        str | None, option("The column that tells the time (one that looks like it).", SERIES)
    ] = None,
    trial: TrialColumn = None,
    lags: Annotated[
        list[int] | None, option("A number of lags to try; once per number (one column: 2 to 5).", _TRAINING)
    ] = None,
    delay: Annotated[
        list[int] | None, option("Steps between them to try; once per number (from the data).", _TRAINING)
    ] = None,
    families: Annotated[
        list[str] | None,
        option(
            "A family to try, alrnn, shallow, clipped-shallow; once per family (alrnn; of two to six columns "
            "shallow, too).",
            _TRAINING,
        ),
    ] = None,
    latent_dim: Annotated[
        list[int] | None, option("Latent units M to try; once per number (50 to 96).", _TRAINING)
    ] = None,
    gated: Annotated[
        list[int] | None, option("Gated units P to try; once per number (20 to 80).", _TRAINING)
    ] = None,
    tau: Annotated[
        list[int] | None, option("Steps between forcings to try; once per number.", _TRAINING)
    ] = None,
    alpha: Annotated[
        list[float] | None, option("Forcing strengths to try; once per number (0.05 to 0.2).", _TRAINING)
    ] = None,
    learning_rate: Annotated[
        list[float] | None, option("First learning rates to try; once per number.", _TRAINING)
    ] = None,
    input_noise: Annotated[
        list[float] | None, option("Noise on forcing inputs to try; once per number.", _TRAINING)
    ] = None,
    gradient_clip: Annotated[
        list[float] | None, option("Longest gradients to try; once per number.", _TRAINING)
    ] = None,
    optimizer: Annotated[
        list[str] | None,
        option("An optimiser to try, soap or radam; once per name (soap; of short series radam).", _TRAINING),
    ] = None,
    batch_size: Annotated[int | None, option("Sequences per update (16).", _TRAINING)] = None,
    sequence_length: Annotated[int | None, option("Rows per sequence (200).", _TRAINING)] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Try many settings of training, and keep the best model. The same command again goes on after a stop.

    Free runs of candidates start at rows that they did not learn from and are compared with all of the
    training data; the held-out part is seen once, at the end. The folder receives search.toml, table.csv,
    result.json and, in best/, the winner as a run.
    """
    given = {name: value for name, value in locals().items() if value is not None and value != []}
    for name in ("output", "series", "json", "quiet"):
        given.pop(name, None)
    if inputs is not None:
        given["inputs"] = input_names(inputs)
    from palrnn.report.sections.invariants import invariants_table, verdict_lines
    from palrnn.report.sections.search import search_table
    from palrnn.searches import search

    voice, begun = Voice(json, quiet), clock.monotonic()
    voice.compiling()
    result = search(
        series,
        run=output,
        progress=voice.progress("search"),
        on_data=lambda data: voice.say(repr(data)),
        announce=voice.say,
        **given,
    )
    seconds, card = clock.monotonic() - begun, result.best.invariants()
    voice.result(
        {"output": output, "seconds": seconds} | result.to_dict(),
        search_table(result.table, most=_LISTED),
        result.why,
        invariants_table([card]),
        *verdict_lines(card, result.verdict),
        f"{result.updates:,} updates of {len(result.table)} candidates in {seconds:.1f} s; "
        f"{wrote(output)}, the model in {output.rstrip('/')}/best",
    )
