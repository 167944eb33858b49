"""`palrnn import-julia`: shallow PLRNNs of the public Julia code as palrnn checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

# by which the command recognises a file that it may write again
_ORIGIN = "from a Julia BSON file"


@app.command("import-julia", epilog="Example: palrnn import-julia model_5000.bson -o model.safetensors")
def import_julia_command(
    file: Annotated[Path, typer.Argument(help="A BSON file with a shallowPLRNN or clippedShallowPLRNN.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The checkpoint to write.")],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Import a published shallow PLRNN (Julia, numbers only)."""
    from palrnn.engine.folders import check_file
    from palrnn.model import import_julia, save_checkpoint

    check_file(output, _ORIGIN.encode(), inputs=[file])
    model = import_julia(file)
    save_checkpoint(output, model, training={"imported": _ORIGIN})
    sizes = {"latent_dim": model.latent_dim, "observed_dim": model.observed_dim, "hidden": model.hidden}
    Voice(json, quiet).result({"output": str(output), **sizes}, f"wrote {output}: {model}")
