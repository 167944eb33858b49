"""Learning by evidence: particle-SAEM on windows."""

from palrnn.tuning.comparison import Comparison, compare, comparison_configs
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.evaluation import HeldOutEvaluation, RolloutInvariants, heldout_evaluation
from palrnn.tuning.history import TuningHistory
from palrnn.tuning.noise_fit import NoiseFit, NoiseFitConfig, fit_noise
from palrnn.tuning.saem import SAEMResult, check_saem, saem
from palrnn.tuning.sequences import lorenz63_sequences
