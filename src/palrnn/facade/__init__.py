"""The few verbs most people need: `reconstruct` a series, and ask the result.

result = palrnn.reconstruct(x, dt=0.01)
result.generate(10_000)
result.invariants()
result.geometry()
result.report("report.html")
"""

from palrnn.facade.about import About
from palrnn.facade.learning import reconstruct
from palrnn.facade.reconstruction import Reconstruction
from palrnn.facade.settings import (
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
