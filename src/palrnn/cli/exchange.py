"""`palrnn import-torch`, `import-julia`, `export-torch`, `export-onnx`: models of and for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

_Checkpoint = Annotated[Path, typer.Option("-o", "--output", help="The checkpoint to write.")]
_Model = Annotated[Path, typer.Argument(help="A run folder, or a checkpoint.")]
_Output = Annotated[Path, typer.Option("-o", "--output", help="The file to write; it must not exist.")]


@app.command("import-torch", epilog="Example: palrnn import-torch alrnn.pt --gated 10 -o model.safetensors")
def import_torch_command(
    file: Annotated[
        Path, typer.Argument(help="A torch state dict: A, W, h, B of an AL-RNN, or A, W1, W2, h1, h2.")
    ],
    output: _Checkpoint,
    gated: Annotated[
        int | None, typer.Option(help="The number of gated units of an AL-RNN, which its file does not hold.")
    ] = None,
    family: Annotated[str, typer.Option(help="alrnn, shallow or clipped-shallow.")] = "alrnn",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Import a published AL-RNN or shallow PLRNN (torch, weights only)."""
    from palrnn.model import import_torch

    how = {"gated": gated, "family": family}
    _import(import_torch, file, output, "from a torch state dict", "gated", Voice(json, quiet), **how)


@app.command("import-julia", epilog="Example: palrnn import-julia model_5000.bson -o model.safetensors")
def import_julia_command(
    file: Annotated[Path, typer.Argument(help="A BSON file with a shallowPLRNN or clippedShallowPLRNN.")],
    output: _Checkpoint,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Import a published shallow PLRNN (Julia, numbers only)."""
    from palrnn.model import import_julia

    _import(import_julia, file, output, "from a Julia BSON file", "hidden", Voice(json, quiet))


def _import(
    read: Callable[..., Any], file: Path, output: Path, origin: str, size: str, voice: Voice, **how: Any
) -> None:
    """Write what ``read`` finds in ``file``; by its ``origin`` a file is known that may be written again."""
    from palrnn.engine.folders import check_file
    from palrnn.model import save_checkpoint

    check_file(output, origin.encode(), inputs=[file])
    model = read(file, **how)
    save_checkpoint(output, model, training={"imported": origin})
    sizes = {name: getattr(model, name) for name in ("latent_dim", "observed_dim", size)}
    voice.result({"output": str(output), **sizes}, f"wrote {output}: {model}")


@app.command("export-torch", epilog="Example: palrnn export-torch run/ -o alrnn.pt")
def export_torch_command(
    model: _Model, output: _Output, json: JsonFlag = False, quiet: QuietFlag = False
) -> None:
    """Export an AL-RNN as the torch state dict that the published code loads."""
    from palrnn.model import export_torch

    _export(export_torch, model, output, Voice(json, quiet))


@app.command("export-onnx", epilog="Example: palrnn export-onnx run/ -o step.onnx")
def export_onnx_command(
    model: _Model, output: _Output, json: JsonFlag = False, quiet: QuietFlag = False
) -> None:
    """Export one step of a model as an ONNX graph."""
    from palrnn.model import export_onnx

    _export(export_onnx, model, output, Voice(json, quiet))


def _export(write: Callable[[Any, Path], None], model: Path, output: Path, voice: Voice) -> None:
    from palrnn.engine.folders import check_file
    from palrnn.runs import Reconstruction

    check_file(output, None, inputs=[model])
    drift = Reconstruction.load(model).drift
    write(drift, output)
    sizes = {"latent_dim": drift.latent_dim, "observed_dim": drift.observed_dim, "gated": drift.gated}
    voice.result({"output": str(output), **sizes}, f"wrote {output}: {drift}")
