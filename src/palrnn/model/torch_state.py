"""The published code's torch state dicts: AL-RNNs and shallow PLRNNs read, AL-RNNs written."""

from __future__ import annotations

import io
import os
import re
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats, as_path, first_line, one_of
from palrnn.engine.files import write_bytes
from palrnn.engine.text import printable
from palrnn.model.checkpoint import CheckpointError
from palrnn.model.families.alrnn import ALRNN
from palrnn.model.families.shallow import ClippedShallowPLRNN, ShallowPLRNN
from palrnn.model.palrnn import drift_of

_TENSORS = {
    "alrnn": ("A", "W", "h", "B"),
    "shallow": ("A", "W1", "W2", "h1", "h2"),
    "clipped-shallow": ("A", "W1", "W2", "h1", "h2"),
}
#: Older ones can run code from a file although told to read weights only (CVE-2025-32434, CVE-2026-24747).
OLDEST_TORCH = (2, 10)
# a few bytes of a file can stand for a tensor of any size; a network of 8,192 units has so many weights
_MOST_NUMBERS = 2**26


def import_torch(
    path: str | os.PathLike[str], *, gated: int | None = None, family: str = "alrnn"
) -> ALRNN | ShallowPLRNN:
    """Return the network in a torch state dict.

    Of an AL-RNN, ``A (M,)``, ``W (M, M)``, ``h (M,)``, ``B (N, M)``. The published code embeds by ``x @ B``,
    so ``E = B.T``. Such files do not hold the number of ``gated`` units; give it. Of a ``family`` "shallow"
    or "clipped-shallow", ``A (M,)``, ``W1 (M, H)``, ``W2 (H, M)``, ``h1 (M,)``, ``h2 (H,)`` and nothing else:
    all units are observed, and its gates are its hidden units. Such files do not say which of the two it is.
    ``A`` may also be the full diagonal matrix.

    Weights only: a file with anything but tensors is refused. Needs PyTorch, at least 2.10:
    ``pip install 'palrnn[torch]'``.
    """
    file = as_path(path)
    names = _TENSORS[one_of(family, "family", tuple(_TENSORS))]
    if (family == "alrnn") != (gated is not None):
        raise ValueError(
            "gated must be given for an AL-RNN, whose files do not hold it"
            if gated is None
            else f"gated is of an AL-RNN; the gates of family={family!r} are its hidden units"
        )
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
    missing = [name for name in names if not isinstance(state.get(name), torch.Tensor)]
    if missing:
        held = ", ".join(map(str, state)) or "none"
        raise CheckpointError(f"{where}: no tensor {missing[0]}, there are {printable(held, 200)}")
    try:
        arrays = [_floats(name, state[name]) for name in names]
        if gated is not None:
            A, W, h, B = arrays
            return ALRNN(_diagonal(A), W, h, B.T, gated)
        more = [str(name) for name in state if name not in names]
        if more:
            # inputs, an observation model or an embedding: what it does is not in the file
            known = ", ".join(names)
            raise ValueError(f"has {printable(more[0], 80)} besides {known}, and cannot be imported")
        cls = ClippedShallowPLRNN if family == "clipped-shallow" else ShallowPLRNN
        return cls(_diagonal(arrays[0]), *arrays[1:])
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


def export_torch(model: Any, path: str | os.PathLike[str]) -> None:
    """Write an AL-RNN, or the drift of a PAL-RNN, as the torch state dict that `import_torch` reads.

    ``A (M,)``, ``W (M, M)``, ``h (M,)`` and ``B = E.T (N, M)``, in float64: ``load_state_dict`` of the
    published ``AL_RNN(M, P, N)`` takes them into its own float32. The number of gated units P is not in such
    a file, and noise, standardizer and time step are not, either. A network without gates is refused, because
    the published code gates every unit where P = 0. Needs PyTorch: ``pip install 'palrnn[torch]'``.
    """
    drift = drift_of(model)
    if not isinstance(drift, ALRNN):
        raise ValueError(
            f"model must be an AL-RNN, which the published code runs, got {type(drift).__name__}"
        )
    if drift.input_dim:
        raise ValueError(
            f"model must have no external inputs, as the published code has none, has {drift.input_dim}"
        )
    if drift.gated == 0:
        raise ValueError("model must have gated units: the published code gates every unit where P = 0")
    file = as_path(path)
    try:
        import torch
    except ImportError:
        raise ValueError("exporting to torch needs PyTorch: pip install 'palrnn[torch]'") from None
    arrays = {"A": drift.A, "W": drift.W, "h": drift.h, "B": drift.E.T}
    buffer = io.BytesIO()
    torch.save({name: torch.tensor(array, dtype=torch.float64) for name, array in arrays.items()}, buffer)
    write_bytes(file, buffer.getvalue())
