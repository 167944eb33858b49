"""Where results live: one file per finished task, which is there when it is whole and not there otherwise.

    DIR/tasks/KIND/HASH.json            the result (or .safetensors for a model)
    DIR/tasks/KIND/HASH.failed.json     the traceback of a task that failed
    DIR/timings.jsonl                   seconds and machine of each finished task; never part of a result
    DIR/run.json                        who is running here, what is under way, and the last sign of life
    DIR/sessions.jsonl                  the earlier runs in this folder, from first to last sign of life

Only the coordinator writes. Workers, on this machine or another, hand their bytes to it, so no result can end
up in the wrong place and no shared file system is needed.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palrnn.engine.files import append_line, subfolder, write_bytes, write_json
from palrnn.engine.folders import writable_folder
from palrnn.engine.locks import lock_holder
from palrnn.sweeps.task import Outcome, Task, machine

TIMINGS, SESSIONS = "timings.jsonl", "sessions.jsonl"
#: A run without a sign of life for this long is taken for dead when it is on another machine.
STALE_SECONDS = 60.0


class Store:
    """The results in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._started = 0.0
        self._beat = 0.0

    def name(self, task: Task) -> str:
        """The file of this task's result, as seen from the folder."""
        return f"tasks/{task.kind.name}/{task.hash}{task.kind.suffix}"

    def path(self, task: Task) -> Path:
        """The file of this task's result."""
        return self.folder / self.name(task)

    def has(self, task: Task) -> bool:
        """Whether this task is done."""
        return self.path(task).is_file()

    def read(self, task: Task) -> bytes:
        """The bytes of a finished task's result."""
        return self.path(task).read_bytes()

    def result(self, task: Task) -> dict[str, Any]:
        """The values that a finished ``.json`` task returned."""
        values: dict[str, Any] = json.loads(self.read(task))["result"]
        return values

    def result_or_empty(self, task: Task) -> dict[str, Any]:
        """The values that a ``.json`` task returned, or nothing if it is not finished."""
        return self.result(task) if self.has(task) else {}

    def put(self, task: Task, data: bytes) -> None:
        """Write the bytes of a task's result."""
        subfolder(subfolder(self.folder, "tasks"), task.kind.name)
        write_bytes(self.path(task), data)

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Write what a task gave: its result, or its traceback."""
        if outcome.data is None:
            subfolder(subfolder(self.folder, "tasks"), task.kind.name)
            where = {"host": outcome.host, "machine": outcome.machine, "label": task.label}
            write_json(self._failure_path(task), task.identity | where | {"traceback": outcome.error})
            return
        # the timing first: a result without its timing would stay without it
        note = {
            "hash": task.hash,
            "kind": task.kind.name,
            "seconds": round(outcome.seconds, 3),
            "processor": round(outcome.processor, 3),
            "machine": outcome.machine,
        }
        append_line(self.folder / TIMINGS, line_bytes(note))
        self.put(task, outcome.data)
        self.forget_failure(task)

    def failure(self, task: Task) -> str | None:
        """The traceback of a task that failed, or None."""
        path = self._failure_path(task)
        return str(json.loads(path.read_text(encoding="utf-8"))["traceback"]) if path.is_file() else None

    def forget_failure(self, task: Task) -> None:
        """Let a failed task be tried again."""
        self._failure_path(task).unlink(missing_ok=True)

    def timing_lines(self) -> list[dict[str, Any]]:
        """Seconds and machine of each task, each time that it was finished."""
        return read_lines(self.folder / TIMINGS)

    def timings(self) -> dict[str, dict[str, Any]]:
        """Seconds and machine of each finished task, by hash; a repeated task counts once, its last time."""
        return {line["hash"]: line for line in self.timing_lines()}

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold the folder for one run of tasks; the operating system lets go of it however the run ends."""
        with writable_folder(self.folder, "sweep", "running tasks"):
            self._started = time.time()
            for cut_off in self.folder.glob("tasks/*/.*.tmp"):
                cut_off.unlink()
            if self._run_path.is_file():
                for last in self.sessions()[len(read_lines(self.folder / SESSIONS)) :]:
                    append_line(self.folder / SESSIONS, line_bytes(last))
                self._run_path.unlink()
            yield

    def due(self, every: float = 2.0) -> bool:
        """Whether the last sign of life is ``every`` seconds old."""
        return abs(time.time() - self._beat) >= every

    def beat(self, running: Sequence[Task], *, workers: int, engine: str, purpose: str = "") -> None:
        """Give a sign of life with what is under way, for what purpose, and on which machine."""
        self._beat = now = time.time()
        names = [{"hash": task.hash, "kind": task.kind.name, "label": task.label} for task in running]
        here = {"pid": os.getpid(), "host": platform.node(), "engine": engine, "workers": workers}
        here |= {"purpose": purpose, "machine": machine()}
        times = {"started": round(self._started, 1), "heartbeat": round(now, 1)}
        write_json(self._run_path, here | times | {"running": names})

    def run(self) -> dict[str, Any]:
        """The last sign of life: pid, host, engine, workers, started, heartbeat, running; empty if none.

        And, since they are kept, the purpose and the machine.

        One that makes no sense, in a folder from somebody else, is none.
        """
        try:
            run: dict[str, Any] = json.loads(self._run_path.read_text(encoding="utf-8"))
            known = all(isinstance(run[name], str) for name in ("host", "engine"))
            counts = all(type(run[name]) is int for name in ("pid", "workers"))
            times = all(math.isfinite(run[name]) for name in ("started", "heartbeat"))
            named = all(isinstance(task[name], str) for task in run["running"] for name in ("kind", "label"))
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return {}
        return run if known and counts and times and named else {}

    def sessions(self) -> list[dict[str, Any]]:
        """All runs in this folder so far, the last one included: as `run`, with nothing under way."""
        before, last = read_lines(self.folder / SESSIONS), self.run()
        # an archive holds the last run, too, and may have been put back beside it
        new = [last | {"running": []}] if last else []
        return [*before, *(run for run in new if run not in before)]

    def alive(self) -> bool:
        """Whether a run is at work here now; on another machine, whether it gave a sign of life lately."""
        holder, run = lock_holder(self.folder), self.run()
        if holder is None or not run:
            return False
        # a sign of life from the future is as good as an old one: a clock was set back
        return holder.is_here or abs(time.time() - run["heartbeat"]) < STALE_SECONDS

    @property
    def _run_path(self) -> Path:
        return self.folder / "run.json"

    def _failure_path(self, task: Task) -> Path:
        return self.path(task).with_name(f"{task.hash}.failed.json")


def line_bytes(value: dict[str, Any]) -> bytes:
    """``value`` as a line of JSON."""
    return json.dumps(value, sort_keys=True).encode() + b"\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The values in a file of JSON lines; a line that was cut off is left out, a missing file is empty."""
    values = []
    for line in path.read_bytes().splitlines() if path.is_file() else []:
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    return [value for value in values if isinstance(value, dict)]
