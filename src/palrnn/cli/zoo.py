"""`palrnn zoo`: the trained models of a results folder, listed or taken out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.terminal import listing

_EXAMPLES = (
    "Examples: palrnn zoo results/paper; palrnn zoo results/paper p0.1-o0.1-t16-s0 -o model.safetensors"
)
_COLUMNS = {
    "process": "process_std",
    "observed": "observation_std",
    "tau": "tau",
    "seed": "seed",
    "D_stsp": "dstsp",
    "lyapunov": "lyapunov",
}


@app.command("zoo", epilog=_EXAMPLES)
def zoo_command(
    zoo: Annotated[Path, typer.Argument(help="A results folder, or the .safetensors file of its models.")],
    name: Annotated[str | None, typer.Argument(help="The model to take out; without it, list all.")] = None,
    # not a Path, which takes an empty name for the current folder
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="The checkpoint to write.")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """List the trained models of a results folder, or write one of them as a checkpoint.

    Names tell process noise, observation noise, forcing interval and seed.
    """
    from palrnn.engine.files import write_bytes
    from palrnn.engine.folders import check_file
    from palrnn.paper.zoo import zoo_checkpoint_bytes, zoo_models

    voice = Voice(json, quiet)
    models = zoo_models(zoo)
    if name is None:
        if output is not None:
            raise ValueError("--output needs the name of a model")
        rows = [(key, *map(model.figures.get, _COLUMNS.values())) for key, model in models.items()]
        values = {key: model.figures for key, model in models.items()}
        voice.result(values, listing(("name", *_COLUMNS), rows))
        return
    data = zoo_checkpoint_bytes(zoo, name)[name]
    target = check_file(f"{name}.safetensors" if output is None else output)
    write_bytes(target, data)
    voice.result({"output": str(target), **models[name].figures}, f"wrote {target}")
