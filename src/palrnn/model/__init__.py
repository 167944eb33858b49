"""What is learned: ALRNN, PALRNN, and the checkpoints that hold them."""

from palrnn.model.alrnn import ALRNN, initial_alrnn
from palrnn.model.checkpoint import (
    Checkpoint,
    CheckpointError,
    checkpoint_bytes,
    checkpoint_from_bytes,
    load_checkpoint,
    save_checkpoint,
)
from palrnn.model.palrnn import PALRNN, Sample, drift_of
from palrnn.model.torch_import import import_torch
from palrnn.model.trajectory import DivergenceWarning, Trajectory

__all__ = [
    "ALRNN",
    "PALRNN",
    "Checkpoint",
    "CheckpointError",
    "DivergenceWarning",
    "Sample",
    "Trajectory",
    "checkpoint_bytes",
    "checkpoint_from_bytes",
    "drift_of",
    "import_torch",
    "initial_alrnn",
    "load_checkpoint",
    "save_checkpoint",
]
