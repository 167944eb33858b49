"""Learning by teacher forcing: the objective, its closed-form gradient, and the trainer."""

from palrnn.forcing.config import TrainConfig
from palrnn.forcing.history import Evaluation, History
from palrnn.forcing.objective import Gradient, itf_gradient, itf_loss
from palrnn.forcing.trainer import TrainingDivergedError, TrainResult, train

__all__ = [
    "Evaluation",
    "Gradient",
    "History",
    "TrainConfig",
    "TrainResult",
    "TrainingDivergedError",
    "itf_gradient",
    "itf_loss",
    "train",
]
