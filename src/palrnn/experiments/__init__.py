"""The paper's studies as resumable sweeps, on one machine or a Dask cluster."""

from palrnn.experiments.cluster import ClusterEngine
from palrnn.experiments.local import LocalEngine
from palrnn.experiments.runner import Tally, closure, run
from palrnn.experiments.store import Store
from palrnn.experiments.task import Job, Kind, Outcome, Task, execute

__all__ = [
    "ClusterEngine",
    "Job",
    "Kind",
    "LocalEngine",
    "Outcome",
    "Store",
    "Tally",
    "Task",
    "closure",
    "execute",
    "run",
]
