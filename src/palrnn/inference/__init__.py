"""Which gates were open: Kalman, resampling, the Rao-Blackwellised particle filter, smoothing, evidence."""

from palrnn.inference.evidence import Evidence, windowed_evidence
from palrnn.inference.particle_filter import FilterDiedError, Filtered, rbpf
from palrnn.inference.path import PathPosterior, path_posterior
from palrnn.inference.resampling import resample
from palrnn.inference.smoothing import FewPathsWarning, Smoothed, smooth

__all__ = [
    "Evidence",
    "FewPathsWarning",
    "FilterDiedError",
    "Filtered",
    "PathPosterior",
    "Smoothed",
    "path_posterior",
    "rbpf",
    "resample",
    "smooth",
    "windowed_evidence",
]
