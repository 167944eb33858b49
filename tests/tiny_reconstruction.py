"""A reconstruction that takes a second: small model, few updates, analyses of the smallest useful size."""

from __future__ import annotations

from palrnn.data import lorenz63
from palrnn.engine.progress import quiet
from palrnn.runs import Reconstruction, ReportSettings, reconstruct

SAEM = {"length": 8, "iterations": 2, "windows": 4, "particles": 16, "paths": 2, "heldout_windows": 4}
TINY = ReportSettings(
    invariants={"steps": 400, "discard": 50, "pairs": 2, "ahead": 5, "long_steps": 1000},
    filter={"steps": 40, "particles": 16, "paths": 8},
    geometry={"steps": 40, "particles": 16, "passes": 2, "paths": 8, "state_paths": 1},
    tuning={"task": {"saem": SAEM}},
)
SIZES = {"latent_dim": 8, "gated": 3, "sequence_length": 40, "batch_size": 4, "learning_rate": 1e-2}


def tiny_reconstruction(**settings) -> Reconstruction:
    """Return a reconstruction of 5000 steps of Lorenz-63, of which 1000 are held out."""
    usual = {"dt": 0.01, "tau": 8, "updates": 1500, "progress": quiet}
    return reconstruct(lorenz63(5000, seed=3), **(usual | SIZES | settings))
