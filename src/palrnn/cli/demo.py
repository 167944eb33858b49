"""`palrnn demo`: the main job from nothing, as far as it is built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app


@app.command("demo", epilog="Example: palrnn demo -o demo/")
def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Simulate Lorenz-63 and save a model that is ready to be trained on it."""
    from palrnn.data import Standardizer, lorenz63
    from palrnn.model import initial_alrnn, save_checkpoint

    voice = Voice(json, quiet)
    voice.compiling()
    output.mkdir(parents=True, exist_ok=True)
    x = lorenz63(80_000, process_std=0.1, seed=seed)
    model = initial_alrnn(30, 3, 10, seed=seed)
    save_checkpoint(output / "model.safetensors", model, standardizer=Standardizer.fit(x), dt=0.01)
    voice.result({"steps": len(x)}, f"simulated {len(x)} steps, wrote {output / 'model.safetensors'}")
