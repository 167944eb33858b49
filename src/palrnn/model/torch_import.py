"""Import of published AL-RNN checkpoints: torch state dicts with tensors A, W, h and B."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats, as_path, first_line
from palrnn.model.checkpoint import CheckpointError
from palrnn.model.families.alrnn import ALRNN

_TENSORS = ("A", "W", "h", "B")


def import_torch(path: str | os.PathLike[str], *, gated: int) -> ALRNN:
    """Return the network in a torch state dict with ``A (M,)``, ``W (M, M)``, ``h (M,)``, ``B (N, M)``.

    The published code embeds by ``x @ B``, so ``E = B.T``. ``A`` may also be the full diagonal matrix. Such
    files do not hold the number of gated units; give it. Weights only: a file with anything but tensors is
    refused. Needs PyTorch: ``pip install 'palrnn[torch]'``.
    """
    file = as_path(path)
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    try:
        import torch
    except ImportError:
        message = "importing torch checkpoints needs PyTorch: pip install 'palrnn[torch]'"
        raise CheckpointError(message) from None
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for files that it cannot or will not read
        raise CheckpointError(f"{file}: not a torch file of weights only: {first_line(error)}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{file}: holds {type(state).__name__}, expected a state dict")
    missing = [name for name in _TENSORS if not isinstance(state.get(name), torch.Tensor)]
    if missing:
        held = ", ".join(map(str, state)) or "none"
        raise CheckpointError(f"{file}: no tensor {missing[0]}, there are {held[:200]}")
    try:
        A, W, h, B = (_floats(name, state[name]) for name in _TENSORS)
        return ALRNN(_diagonal(A), W, h, B.T, gated)
    except (ValueError, RuntimeError, TypeError) as error:  # torch refuses to convert some kinds of numbers
        raise CheckpointError(f"{file}: {first_line(error)}") from error


def _floats(name: str, tensor: Any) -> Floats:
    if tensor.is_complex() or str(tensor.layout) != "torch.strided":
        raise ValueError(f"{name} must be a dense tensor of real numbers, got {tensor.dtype}")
    return np.asarray(tensor.detach().double().numpy())


def _diagonal(A: Floats) -> Floats:
    if A.ndim != 2:
        return A
    if A.shape[0] != A.shape[1] or np.count_nonzero(A - np.diag(np.diagonal(A))):
        raise ValueError(f"A must be a vector or a diagonal matrix, got {A.shape} with other entries")
    return np.diagonal(A)
