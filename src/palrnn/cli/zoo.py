"""`palrnn zoo`: the trained models of a results folder, listed or taken out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

_EXAMPLES = (
    "Examples: palrnn zoo results/paper; palrnn zoo results/paper p0.1-o0.1-t16-s0 -o model.safetensors"
)


@app.command("zoo", epilog=_EXAMPLES)
def zoo_command(
    zoo: Annotated[Path, typer.Argument(help="A results folder, or the .safetensors file of its models.")],
    name: Annotated[str | None, typer.Argument(help="The model to take out; without it, list all.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The checkpoint to write.")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """List the trained models of a results folder, or write one of them as a checkpoint.

    Names tell process noise, observation noise, forcing interval and seed.
    """
    from palrnn.engine.files import write_bytes
    from palrnn.experiments.zoo import zoo_checkpoint_bytes, zoo_models

    voice = Voice(json, quiet)
    models = zoo_models(zoo)
    if name is None:
        if output is not None:
            raise ValueError("--output needs the name of a model")
        table = {model.name: model.figures for model in models.values()}
        voice.result(table, "\n".join([_HEAD, *(_row(key, figures) for key, figures in table.items())]))
        return
    data = zoo_checkpoint_bytes(zoo, name)[name]
    target = Path(f"{name}.safetensors") if output is None else output
    write_bytes(target, data)
    voice.result({"output": str(target), **models[name].figures}, f"wrote {target}")


_HEAD = f"{'name':22} {'process':>8} {'observed':>8} {'tau':>4} {'seed':>4} {'D_stsp':>8} {'lyapunov':>8}"


def _row(name: str, figures: dict[str, Any]) -> str:
    numbers = [f"{figures['process_std']:8g} {figures['observation_std']:8g}"]
    numbers.append(f"{figures['tau']:4d} {figures['seed']:4d}")
    numbers += [_number(figures.get(key)) for key in ("dstsp", "lyapunov")]
    return f"{name:22} " + " ".join(numbers)


def _number(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.3f}"
