"""`palrnn export-torch` and `palrnn export-onnx`: a model for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

_Model = Annotated[Path, typer.Argument(help="A run folder, or a checkpoint.")]
_Output = Annotated[Path, typer.Option("-o", "--output", help="The file to write; it must not exist.")]


@app.command("export-torch", epilog="Example: palrnn export-torch run/ -o alrnn.pt")
def export_torch_command(
    model: _Model, output: _Output, json: JsonFlag = False, quiet: QuietFlag = False
) -> None:
    """Export an AL-RNN as the torch state dict that the published code loads."""
    from palrnn.model import export_torch

    _write(export_torch, model, output, Voice(json, quiet))


@app.command("export-onnx", epilog="Example: palrnn export-onnx run/ -o step.onnx")
def export_onnx_command(
    model: _Model, output: _Output, json: JsonFlag = False, quiet: QuietFlag = False
) -> None:
    """Export one step of a model as an ONNX graph."""
    from palrnn.model import export_onnx

    _write(export_onnx, model, output, Voice(json, quiet))


def _write(export: Callable[[Any, Path], None], model: Path, output: Path, voice: Voice) -> None:
    from palrnn.engine.folders import check_file
    from palrnn.runs import Reconstruction

    check_file(output, None, inputs=[model])
    drift = Reconstruction.load(model).drift
    export(drift, output)
    sizes = {"latent_dim": drift.latent_dim, "observed_dim": drift.observed_dim, "gated": drift.gated}
    voice.result({"output": str(output), **sizes}, f"wrote {output}: {drift}")
