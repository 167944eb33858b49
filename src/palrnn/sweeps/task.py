"""A task: one unit of work, named by the content of its settings.

A task is a function of plain settings and of the results of the tasks it needs, and its result is one file.
Its hash covers the kind, the kind's version, the settings and the hashes of what it needs, so a result can be
kept, found again and shared between studies without anything else to remember. Nothing that differs between
two runs of the same task (time, machine, worker) may enter the result: it would depend on the engine.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import palrnn
from palrnn.engine.kernel import pin_blas
from palrnn.engine.plain import plain
from palrnn.engine.processors import available_processors, has_wide_registers


@dataclass(frozen=True)
class Kind:
    """A sort of task: its name, the function that does it as ``module:function``, and what it returns.

    A ``.json`` function returns a table of plain values, a ``.safetensors`` function returns bytes; both are
    called as ``function(settings, inputs)``, where ``inputs`` holds the bytes of what the task needs, by
    role. Raise ``version`` when the same settings no longer give the same result. ``archived=False`` keeps
    results out of the archive of a sweep: they are kept elsewhere, or computed again in no time.
    """

    name: str
    function: str
    suffix: str = ".json"
    version: int = 1
    archived: bool = True


@dataclass(frozen=True, eq=False)
class Task:
    """One unit of work. ``cost`` (relative, within a kind) and ``label`` do not enter the hash."""

    kind: Kind
    settings: Mapping[str, Any]
    needs: Mapping[str, Task] = field(default_factory=dict)
    cost: float = 1.0
    label: str = ""

    @cached_property
    def hash(self) -> str:
        """Twenty hexadecimal digits that name this unit of work."""
        return hashlib.sha256(canonical(self.identity).encode()).hexdigest()[:20]

    @property
    def identity(self) -> dict[str, Any]:
        """All that determines the result."""
        return {
            "kind": self.kind.name,
            "version": self.kind.version,
            "settings": dict(self.settings),
            "needs": {role: task.hash for role, task in self.needs.items()},
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and other.hash == self.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Task({self.kind.name}, {self.label or dict(self.settings)}, {self.hash})"


@dataclass(frozen=True)
class Job:
    """What is sent to a worker: plain data only, so that it travels between processes and machines."""

    hash: str
    function: str
    suffix: str
    identity: dict[str, Any]
    inputs: dict[str, bytes]
    palrnn: str = palrnn.__version__


@dataclass(frozen=True)
class Outcome:
    """What came back: the bytes of the result or the text of a traceback, and where and how long it ran.

    ``seconds`` went by, in which the worker had ``processor`` seconds of its cores.
    """

    data: bytes | None
    error: str | None = None
    seconds: float = 0.0
    processor: float = 0.0
    machine: str = ""
    host: str = ""


def execute(job: Job, interruptible: bool = False) -> Outcome:
    """Do a job in this process. Whatever goes wrong comes back as a traceback.

    An ``interruptible`` one lets Ctrl-C through: a worker leaves that to the coordinator.
    """
    start, busy = time.perf_counter(), time.process_time()
    data, wrong = None, None
    try:
        data = _result(job)
    except BaseException as error:
        if interruptible and isinstance(error, KeyboardInterrupt):
            raise
        wrong = traceback.format_exc()
    spent = time.perf_counter() - start, time.process_time() - busy
    return Outcome(data, wrong, *spent, machine(), platform.node())


def _result(job: Job) -> bytes:
    if job.palrnn != palrnn.__version__:
        raise RuntimeError(
            f"this worker has palrnn {palrnn.__version__}, the run was started with {job.palrnn}"
        )
    module, _, name = job.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    pin_blas()  # the order of a BLAS sum depends on the number of threads
    result = function(job.identity["settings"], job.inputs)
    data: bytes = result if job.suffix == ".safetensors" else json_bytes(job.identity | {"result": result})
    return data


def canonical(value: Any) -> str:
    """Return ``value`` as JSON in one spelling: sorted keys, no spaces, shortest exact floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def json_bytes(value: Any) -> bytes:
    """Return ``value`` as readable JSON; numbers that are not finite become null."""
    return (json.dumps(plain(value), sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


@lru_cache(maxsize=1)
def machine() -> str:
    """The processor of this machine, how many of its cores this process may use, and how wide they are."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, {available_processors()} cores{', AVX-512' if has_wide_registers() else ''}"
