"""Is it the same dynamics: state-space divergence, spectra, Lyapunov exponents, forecasts."""

from palrnn.invariants.floors import Floor, dstsp_floor, spectrum_floor
from palrnn.invariants.lyapunov import (
    DivergenceError,
    LyapunovSpectrum,
    kaplan_yorke_dimension,
    lyapunov_spectrum,
)
from palrnn.invariants.prediction import PredictionError, prediction_error
from palrnn.invariants.spectrum import power_spectrum, spectrum_distance, spectrum_distances
from palrnn.invariants.state_space import StateSpaceDivergence, dstsp

__all__ = [
    "DivergenceError",
    "Floor",
    "LyapunovSpectrum",
    "PredictionError",
    "StateSpaceDivergence",
    "dstsp",
    "dstsp_floor",
    "kaplan_yorke_dimension",
    "lyapunov_spectrum",
    "power_spectrum",
    "prediction_error",
    "spectrum_distance",
    "spectrum_distances",
    "spectrum_floor",
]
