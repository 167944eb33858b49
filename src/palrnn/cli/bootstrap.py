"""`palrnn bootstrap`: many models of one series, and what varies over them."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app, option, wrote
from palrnn.cli.options import Columns, Inputs, ObservationNoise, Steps, TimeStep, input_names
from palrnn.cli.terminal import listing

_TRAINING, _WORK = "The first model", "The ensemble"


@app.command("bootstrap", epilog="Example: palrnn bootstrap data.csv --models 50 -o boot/")
def bootstrap_command(
    output: OutputFolder,
    series: Annotated[
        str,
        typer.Argument(
            help="A file (.csv .txt .tsv .npy .npz .mat .h5 .edf .parquet; time in rows), or a system: "
            "lorenz63, rossler, lorenz96."
        ),
    ],
    base: Annotated[
        str | None, option("The run of the first model (trained first, with the options below).", _WORK)
    ] = None,
    models: Annotated[int | None, option("Models (reflected, varied: 10; others: 50).", _WORK)] = None,
    method: Annotated[
        str | None,
        option(
            "reflected: other data, sizes and forcings, and refits, for exponents; varied: without refits, "
            "for forecasts; blocks: other data; denoised: from states; seeds: other starts (reflected).",
            _WORK,
        ),
    ] = None,
    block: Annotated[int | None, option("Rows of a block (two training sequences).", _WORK)] = None,
    member_updates: Annotated[
        int | None,
        option(
            "Updates of each model (blocks: a fifth of the first model's; varied, reflected: a tenth).",
            _WORK,
        ),
    ] = None,
    seed: Annotated[int | None, option("The seed of the ensemble (0).", _WORK)] = None,
    workers: Annotated[int | None, option("Processes on this machine (one per core).", _WORK)] = None,
    scheduler: Annotated[str | None, option("A Dask cluster at tcp://host:port instead.", _WORK)] = None,
    steps: Steps = None,
    dt: TimeStep = None,
    observation_std: ObservationNoise = None,
    columns: Columns = None,
    inputs: Inputs = None,
    latent_dim: Annotated[int | None, option("Latent units M of the first model (60).", _TRAINING)] = None,
    gated: Annotated[int | None, option("Gated units P of the first model (40).", _TRAINING)] = None,
    tau: Annotated[int | None, option("Steps between forcings (chosen from the data).", _TRAINING)] = None,
    updates: Annotated[int | None, option("Updates of the first model (30000).", _TRAINING)] = None,
    sequence_length: Annotated[int | None, option("Rows per sequence (200).", _TRAINING)] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train many models on data drawn anew. The same command again goes on after a stop.

    The folder receives the first model as a run in base/, the others in models/, and the figures of
    each model with their intervals in base/findings/bars.json.
    """
    own = _given(models=models, method=method, block=block, updates=member_updates, seed=seed)
    own |= _given(workers=workers, scheduler=scheduler)
    data = _given(
        steps=steps,
        dt=dt,
        observation_std=observation_std,
        columns=columns or None,
        inputs=input_names(inputs),
    )
    training = _given(latent_dim=latent_dim, gated=gated, tau=tau, updates=updates)
    training |= _given(sequence_length=sequence_length)
    from palrnn.data import Dataset
    from palrnn.ensembles import bootstrap
    from palrnn.ensembles.bootstrap import data_of
    from palrnn.runs import Reconstruction, reconstruct

    voice, begun = Voice(json, quiet), clock.monotonic()
    voice.compiling()
    if base is not None and training:
        raise ValueError(f"--{min(training).replace('_', '-')} is of a first model, which --base is already")
    if base is not None:
        first = Reconstruction.load(base)
        dataset = Dataset.prepare(series, **(data_of(first, series) | data))
        voice.say(repr(dataset))
    else:
        dataset, progress = Dataset.prepare(series, **data), voice.progress("training")
        voice.say(repr(dataset))
        first = reconstruct(dataset, run=Path(output) / "base", progress=progress, **training)
    found = bootstrap(
        dataset,
        base=first,
        run=Path(output) / "models",
        progress=voice.progress("models"),
        announce=voice.say,
        **own,
    )
    bars = first.bars(found, count=len(found.models), progress=voice.progress("error bars"))
    seconds = clock.monotonic() - begun
    values = {"output": output, "seconds": seconds, "models": len(found.models), "diverged": found.diverged}
    rows = [(name, value, *bars.interval(name)) for name, value in zip(bars.names, bars.values, strict=True)]
    voice.result(
        values | {"bars": bars.to_dict()},
        f"{found!r} in {seconds:.1f} s; 90 % intervals:",
        listing(("figure", "first model", "from", "to"), rows),
        wrote(output),
    )


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
