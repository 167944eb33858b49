"""Is it the same dynamics: D_stsp, D_H, Lyapunov exponents, forecast error, fixed points, symbols."""

from palrnn.invariants.cycles import Cycle, cycles
from palrnn.invariants.exponents import DivergenceError, LyapunovSpectrum, kaplan_yorke_dimension
from palrnn.invariants.fixed_points import FixedPoints, fixed_points
from palrnn.invariants.floors import Floor, dstsp_floor, spectrum_floor
from palrnn.invariants.free_run import FreeRun, free_run
from palrnn.invariants.lyapunov import lyapunov_spectrum
from palrnn.invariants.over_starts import StartScores
from palrnn.invariants.prediction import PredictionError, prediction_error, valid_prediction_time
from palrnn.invariants.quantities import (
    Counterparts,
    Quantities,
    quantities_of_interest,
    samples_flow,
    stochastic_counterparts,
)
from palrnn.invariants.scorecard import Scorecard, scorecard
from palrnn.invariants.spectrum import power_spectrum, spectrum_distance, spectrum_distances
from palrnn.invariants.state_space import StateSpaceDivergence, dstsp
from palrnn.invariants.symbolic import SymbolicDynamics, symbolic_dynamics
from palrnn.invariants.verdict import Verdict
from palrnn.invariants.viability import Fate, Viability, spread_starts, viability
