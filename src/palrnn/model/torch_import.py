"""Import of published AL-RNN checkpoints: torch state dicts with tensors A, W, h and B."""

from __future__ import annotations

import os
from pathlib import Path

from palrnn.model.alrnn import ALRNN
from palrnn.model.checkpoint import CheckpointError

_TENSORS = ("A", "W", "h", "B")


def import_torch(path: str | os.PathLike[str], *, gated: int) -> ALRNN:
    """Return the network in a torch state dict with ``A (M,)``, ``W (M, M)``, ``h (M,)``, ``B (N, M)``.

    The published code embeds by ``x @ B``, so ``E = B.T``. Such files do not hold the number of gated units; give it.
    Weights only: a file with anything but tensors is refused. Needs PyTorch: ``pip install 'palrnn[torch]'``.
    """
    try:
        import torch
    except ImportError:
        raise CheckpointError("importing torch checkpoints needs PyTorch: pip install 'palrnn[torch]'") from None
    file = Path(path)
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for files that it cannot or will not read
        raise CheckpointError(f"{file}: not a torch file of weights only: {str(error).splitlines()[0]}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{file}: holds {type(state).__name__}, expected a state dict")
    missing = [name for name in _TENSORS if not isinstance(state.get(name), torch.Tensor)]
    if missing:
        raise CheckpointError(f"{file}: no tensor {missing[0]}, there are {', '.join(map(str, state)) or 'none'}")
    A, W, h, B = (state[name].detach().to(torch.float64).numpy() for name in _TENSORS)
    if A.ndim == 2:  # some versions store the full diagonal matrix
        A = A.diagonal()
    try:
        return ALRNN(A, W, h, B.T, gated)
    except ValueError as error:
        raise CheckpointError(f"{file}: {error}") from error
