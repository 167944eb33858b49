"""Learning by teacher forcing: the objective, its closed-form gradient, and the trainer."""

from palrnn.forcing.config import TrainConfig
from palrnn.forcing.evaluation import free_running_evaluation
from palrnn.forcing.history import Evaluation, History
from palrnn.forcing.many import train_many
from palrnn.forcing.objective import Gradient, itf_gradient, itf_loss
from palrnn.forcing.polishing import Polished, polish
from palrnn.forcing.soap import weight_places
from palrnn.forcing.trainer import TrainResult, check_training, train
from palrnn.forcing.updating import TrainingDivergedError
