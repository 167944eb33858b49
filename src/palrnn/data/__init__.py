"""Where series come from: systems, files, noise, standardising, delays, time scales; and `Dataset`."""

from palrnn.data.dataset import Dataset
from palrnn.data.embedding import delay_embed, suggest_lags
from palrnn.data.field import field_jacobian, vector_field
from palrnn.data.inputs import DatasetInputs
from palrnn.data.noise import add_observation_noise, noise_level
from palrnn.data.readers import known_suffixes, reader
from palrnn.data.series import column_names, load_series, load_trials, save_series
from palrnn.data.smoothing import smoothed, suggest_windows
from palrnn.data.source import DataSettings
from palrnn.data.split import subsequences, train_test_split, windows
from palrnn.data.standardize import Standardizer
from palrnn.data.systems import System, known_systems, lorenz63, lorenz96, make_system, rossler, system
from palrnn.data.table import SeriesError
from palrnn.data.timescale import autocorrelation, suggest_tau
