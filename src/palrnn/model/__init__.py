"""What is learned: surrogates of any family, the PAL-RNN around them, forcing, noise, and checkpoints."""

from palrnn.model.checkpoint import (
    Checkpoint,
    CheckpointError,
    checkpoint_bytes,
    checkpoint_from_bytes,
    load_checkpoint,
    save_checkpoint,
)
from palrnn.model.contract import SurrogateError, check_surrogate
from palrnn.model.engine import BOUND, PiecewiseAffine, Rollout
from palrnn.model.families.alrnn import ALRNN, initial_alrnn
from palrnn.model.families.shallow import ClippedShallowPLRNN, ShallowPLRNN
from palrnn.model.forcing_policy import Forcing, as_forcing, policy
from palrnn.model.julia_import import import_julia
from palrnn.model.noise import Noise, ObservationMap, as_noise
from palrnn.model.onnx_export import export_onnx
from palrnn.model.palrnn import PALRNN, Sample, drift_of
from palrnn.model.surrogate import Surrogate, family, family_name, register_family
from palrnn.model.torch_state import export_torch, import_torch
