"""Export to the published AL-RNN code: a torch state dict with tensors A, W, h and B."""

from __future__ import annotations

import io
import os
from typing import Any

from palrnn.engine.checks import as_path
from palrnn.engine.files import write_bytes
from palrnn.model.families.alrnn import ALRNN
from palrnn.model.palrnn import drift_of


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
