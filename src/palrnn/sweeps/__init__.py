"""Resumable sweeps of tasks, on one machine or a Dask cluster, whatever it is that the tasks compute."""

from palrnn.sweeps.archive import archive_contents, write_archive
from palrnn.sweeps.cluster import ClusterEngine
from palrnn.sweeps.engines import SerialEngine, engine_for
from palrnn.sweeps.local import LocalEngine
from palrnn.sweeps.runner import Engine, Tally, closure, run
from palrnn.sweeps.status import sweep_status
from palrnn.sweeps.store import Store
from palrnn.sweeps.task import Job, Kind, Outcome, Task, execute
