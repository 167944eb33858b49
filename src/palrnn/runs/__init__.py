"""The few verbs most people need: `reconstruct` a series, and ask the result.

result = palrnn.reconstruct(x, dt=0.01)
result.generate(10_000)
result.invariants()
result.geometry()
result.report("report.html")
"""

from palrnn.runs.about import About
from palrnn.runs.learning import reconstruct
from palrnn.runs.reconstruction import Reconstruction
from palrnn.runs.settings import (
    FilterSettings,
    GeometrySettings,
    JudgeSettings,
    Noise,
    ReportSettings,
    TuneSettings,
)

__all__ = [
    "About",
    "FilterSettings",
    "GeometrySettings",
    "JudgeSettings",
    "Noise",
    "Reconstruction",
    "ReportSettings",
    "TuneSettings",
    "reconstruct",
]
