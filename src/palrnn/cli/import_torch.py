"""`palrnn import-torch`: published torch checkpoints as palrnn checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

# by which the command recognises a file that it may write again
_ORIGIN = "from a torch state dict"


@app.command("import-torch", epilog="Example: palrnn import-torch alrnn.pt --gated 10 -o model.safetensors")
def import_torch_command(
    file: Annotated[
        Path, typer.Argument(help="A torch state dict: A, W, h, B of an AL-RNN, or A, W1, W2, h1, h2.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The checkpoint to write.")],
    gated: Annotated[
        int | None, typer.Option(help="The number of gated units of an AL-RNN, which its file does not hold.")
    ] = None,
    family: Annotated[str, typer.Option(help="alrnn, shallow or clipped-shallow.")] = "alrnn",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Import a published AL-RNN or shallow PLRNN (torch, weights only)."""
    from palrnn.engine.folders import check_file
    from palrnn.model import import_torch, save_checkpoint

    check_file(output, _ORIGIN.encode(), inputs=[file])
    model = import_torch(file, gated=gated, family=family)
    save_checkpoint(output, model, training={"imported": _ORIGIN})
    sizes = {"latent_dim": model.latent_dim, "observed_dim": model.observed_dim, "gated": model.gated}
    Voice(json, quiet).result({"output": str(output), **sizes}, f"wrote {output}: {model}")
