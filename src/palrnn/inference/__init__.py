"""Which gates were open: Kalman, resampling, the Rao-Blackwellised particle filter, smoothing, evidence."""

from palrnn.inference.calibration import BandCalibration, hindcasts
from palrnn.inference.config import FilterConfig, SampleConfig
from palrnn.inference.diagnostics import FilterDiagnostics
from palrnn.inference.evidence import Evidence, windowed_evidence
from palrnn.inference.forecasts import Forecast
from palrnn.inference.particle_filter import has_fast_filter, rbpf
from palrnn.inference.path import PathPosterior, path_posterior
from palrnn.inference.record import FilterDiedError, Filtered
from palrnn.inference.resampling import resample, scheme
from palrnn.inference.smoothing import FewPathsWarning, Smoothed, smooth
from palrnn.inference.stepper import Stepper
