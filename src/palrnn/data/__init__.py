"""Where series come from: simulated systems, files, noise, standardising, windows."""

from palrnn.data.noise import add_observation_noise
from palrnn.data.series import load_series
from palrnn.data.split import subsequences, train_test_split, windows
from palrnn.data.standardize import Standardizer
from palrnn.data.systems import lorenz63, lorenz96, rossler

__all__ = [
    "Standardizer",
    "add_observation_noise",
    "load_series",
    "lorenz63",
    "lorenz96",
    "rossler",
    "subsequences",
    "train_test_split",
    "windows",
]
