"""`palrnn bootstrap`: many models of one series, and what varies over them."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, OutputFolder, QuietFlag, Voice, app
from palrnn.cli.listing import listing


def _option(words: str) -> Any:
    return typer.Option(help=words, show_default=False)


@app.command("bootstrap", epilog="Example: palrnn bootstrap data.csv --models 50 -o boot/")
def bootstrap_command(
    output: OutputFolder,
    series: Annotated[
        str,
        typer.Argument(
            help="A file (.csv .npy .npz .parquet; time in rows), or a system to simulate: lorenz63, "
            "rossler, lorenz96."
        ),
    ],
    base: Annotated[
        str | None, _option("The run of the first model (trained first, with the options below).")
    ] = None,
    models: Annotated[int | None, _option("Models (50).")] = None,
    method: Annotated[str | None, _option("blocks: data drawn anew; seeds: other starts (blocks).")] = None,
    block: Annotated[int | None, _option("Rows of a block (two training sequences).")] = None,
    member_updates: Annotated[
        int | None, _option("Updates of each model (blocks: a fifth of the first model's).")
    ] = None,
    seed: Annotated[int | None, _option("The seed of the ensemble (0).")] = None,
    workers: Annotated[int | None, _option("Processes on this machine (one per core).")] = None,
    scheduler: Annotated[str | None, _option("A Dask cluster at tcp://host:port instead.")] = None,
    steps: Annotated[int | None, _option("Steps to simulate, test part included (100000).")] = None,
    dt: Annotated[float | None, _option("Time per step.")] = None,
    observation_std: Annotated[float | None, _option("Observation noise of a simulated series (0).")] = None,
    columns: Annotated[list[str] | None, _option("A column to use; once per column (all).")] = None,
    latent_dim: Annotated[int | None, _option("Latent units M of the first model (50).")] = None,
    gated: Annotated[int | None, _option("Gated units P of the first model (20).")] = None,
    tau: Annotated[int | None, _option("Steps between forcings (chosen from the data).")] = None,
    updates: Annotated[int | None, _option("Updates of the first model (30000).")] = None,
    sequence_length: Annotated[int | None, _option("Rows per sequence (200).")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train many models on data drawn anew. The same command again goes on after a stop.

    The folder receives the first model as a run in base/, the others in members/, and the figures of
    each model with their intervals in base/findings/bars.json.
    """
    own = _given(models=models, method=method, block=block, updates=member_updates, seed=seed)
    own |= _given(workers=workers, scheduler=scheduler)
    data = _given(steps=steps, dt=dt, observation_std=observation_std, columns=columns or None)
    training = _given(latent_dim=latent_dim, gated=gated, tau=tau, updates=updates)
    training |= _given(sequence_length=sequence_length)
    from palrnn.data import Dataset
    from palrnn.ensembles import bootstrap
    from palrnn.runs import Reconstruction, reconstruct

    voice, begun = Voice(json, quiet), clock.monotonic()
    voice.compiling()
    dataset = Dataset.prepare(series, **data)
    voice.say(repr(dataset))
    if base is not None and training:
        raise ValueError(f"--{min(training).replace('_', '-')} is of a first model, which --base is already")
    if base is not None:
        first = Reconstruction.load(base)
    else:
        progress = voice.progress("training")
        first = reconstruct(dataset, run=Path(output) / "base", progress=progress, **training)
    found = bootstrap(
        dataset, base=first, run=Path(output) / "models", progress=voice.progress("models"), **own
    )
    bars = first.bars(found, count=len(found.models), progress=voice.progress("error bars"))
    seconds = clock.monotonic() - begun
    values = {"output": output, "seconds": seconds, "models": len(found.models), "diverged": found.diverged}
    rows = [(name, value, *bars.interval(name)) for name, value in zip(bars.names, bars.values, strict=True)]
    voice.result(
        values | {"bars": bars.to_dict()},
        f"{found!r} in {seconds:.1f} s; 90 % intervals:",
        listing(("figure", "first model", "from", "to"), rows),
        f"wrote {output}/",
    )


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
