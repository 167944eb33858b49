"""From a series to a surrogate, and what to ask it: `reconstruct`, `Reconstruction`, and the folder of a run.

result = palrnn.reconstruct(x, dt=0.01)
result.generate(10_000)
result.invariants()
result.forecast(x[-200:], 100).band(0.9)
result.geometry()
result.report("report.html")
"""

from palrnn.runs.folder import Findings, RunFolder
from palrnn.runs.prediction import Imputed, Tracking
from palrnn.runs.reconstruction import Reconstruction
from palrnn.runs.record import RunRecord, SearchTable, TuningSettings, TuningTask
from palrnn.runs.settings import (
    BarSettings,
    FilterSettings,
    GeometrySettings,
    InvariantSettings,
    ReportSettings,
)
from palrnn.runs.training import reconstruct
