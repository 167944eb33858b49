"""Where series come from: simulated systems, files, noise, standardising, windows, delays, time scales."""

from palrnn.data.embedding import delay_embed
from palrnn.data.noise import add_observation_noise
from palrnn.data.series import column_names, load_series, load_trials, save_series
from palrnn.data.split import subsequences, train_test_split, windows
from palrnn.data.standardize import Standardizer
from palrnn.data.systems import System, lorenz63, lorenz96, rossler
from palrnn.data.table import SeriesError
from palrnn.data.timescale import autocorrelation, suggest_tau

__all__ = [
    "SeriesError",
    "Standardizer",
    "System",
    "add_observation_noise",
    "autocorrelation",
    "column_names",
    "delay_embed",
    "load_series",
    "load_trials",
    "lorenz63",
    "lorenz96",
    "rossler",
    "save_series",
    "subsequences",
    "suggest_tau",
    "train_test_split",
    "windows",
]
