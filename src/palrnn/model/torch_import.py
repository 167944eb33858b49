"""Import of published AL-RNN checkpoints: torch state dicts with tensors A, W, h and B."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats, as_path, first_line
from palrnn.engine.text import printable
from palrnn.model.checkpoint import CheckpointError
from palrnn.model.families.alrnn import ALRNN

_TENSORS = ("A", "W", "h", "B")
#: Older ones can run code from a file although told to read weights only (CVE-2025-32434, CVE-2026-24747).
OLDEST_TORCH = (2, 10)
# a few bytes of a file can stand for a tensor of any size; a network of 8,192 units has so many weights
_MOST_NUMBERS = 2**26


def import_torch(path: str | os.PathLike[str], *, gated: int) -> ALRNN:
    """Return the network in a torch state dict with ``A (M,)``, ``W (M, M)``, ``h (M,)``, ``B (N, M)``.

    The published code embeds by ``x @ B``, so ``E = B.T``. ``A`` may also be the full diagonal matrix. Such
    files do not hold the number of gated units; give it. Weights only: a file with anything but tensors is
    refused. Needs PyTorch, at least 2.10: ``pip install 'palrnn[torch]'``.
    """
    file = as_path(path)
    where = printable(file)
    if not file.is_file():
        raise CheckpointError(f"{where}: no such file")
    torch = _torch()
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception:
        # torch raises many kinds, and advises to load without weights_only: that would run code from the file
        why = "it is damaged, of another kind, or holds more than tensors"
        raise CheckpointError(f"{where}: not a torch file of weights only: {why}") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{where}: holds {type(state).__name__}, expected a state dict")
    missing = [name for name in _TENSORS if not isinstance(state.get(name), torch.Tensor)]
    if missing:
        held = ", ".join(map(str, state)) or "none"
        raise CheckpointError(f"{where}: no tensor {missing[0]}, there are {printable(held, 200)}")
    try:
        A, W, h, B = (_floats(name, state[name]) for name in _TENSORS)
        return ALRNN(_diagonal(A), W, h, B.T, gated)
    except (ValueError, RuntimeError, TypeError) as error:  # torch refuses to convert some kinds of numbers
        raise CheckpointError(f"{where}: {first_line(error)}") from error


def _torch() -> Any:
    """Return PyTorch, if it is there and reads weights without running code."""
    install = "pip install 'palrnn[torch]'"
    try:
        import torch
    except ImportError:
        raise CheckpointError(f"importing torch checkpoints needs PyTorch: {install}") from None
    found = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
    if found is None or tuple(map(int, found.groups())) < OLDEST_TORCH:
        raise CheckpointError(
            f"importing torch checkpoints needs PyTorch {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} or newer, found "
            f"{torch.__version__}, which can be made to run code from a file of weights: {install}"
        )
    return torch


def _floats(name: str, tensor: Any) -> Floats:
    if tensor.is_complex() or str(tensor.layout) != "torch.strided":
        raise ValueError(f"{name} must be a dense tensor of real numbers, got {tensor.dtype}")
    if tensor.numel() > _MOST_NUMBERS:
        raise ValueError(
            f"{name} claims {tuple(tensor.shape)} numbers, more than the {_MOST_NUMBERS} allowed"
        )
    return np.asarray(tensor.detach().double().numpy())


def _diagonal(A: Floats) -> Floats:
    if A.ndim != 2:
        return A
    if A.shape[0] != A.shape[1] or np.count_nonzero(A - np.diag(np.diagonal(A))):
        raise ValueError(f"A must be a vector or a diagonal matrix, got {A.shape} with other entries")
    return np.diagonal(A)
