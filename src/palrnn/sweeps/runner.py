"""The loop that gets tasks done: what is ready goes to an engine, what comes back goes to the store.

An engine is anything with the few methods of `Engine`. The loop knows nothing of processes or machines, and
the engines know nothing of dependencies, files or failures on record; so both engines give the same results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from palrnn.engine.progress import Progress, listening
from palrnn.sweeps.status import seconds_left
from palrnn.sweeps.store import Store
from palrnn.sweeps.task import Job, Outcome, Task

#: A task whose worker dies this often is recorded as failed.
LIVES = 3


class Engine(Protocol):
    """Where jobs run."""

    name: str

    @property
    def workers(self) -> int:
        """How many jobs run at the same time."""
        ...

    @property
    def slots(self) -> int:
        """How many jobs may be submitted and not yet returned."""
        ...

    def submit(self, job: Job) -> None:
        """Take a job."""
        ...

    def next(self, timeout: float) -> list[tuple[str, Outcome | None]]:
        """Return the jobs that ended, within ``timeout`` seconds; None stands for a worker that died."""
        ...

    def running(self) -> list[str]:
        """The hashes of the jobs that are being computed."""
        ...

    def close(self) -> None:
        """Stop the workers, or leave the cluster; jobs under way are given up."""
        ...


@dataclass(frozen=True)
class Tally:
    """How a run ended: tasks done before, done now, failed, and waiting for one that failed."""

    before: int
    done: int
    failed: tuple[Task, ...]
    blocked: tuple[Task, ...]

    @property
    def complete(self) -> bool:
        """Whether every task has its result."""
        return not (self.failed or self.blocked)

    def __repr__(self) -> str:
        troubles = f"{len(self.failed)} failed, {len(self.blocked)} blocked"
        return f"Tally({self.before} before, {self.done} now, {troubles})"


def closure(tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks with all they need, each once, needs first, otherwise in order."""
    ordered: dict[Task, None] = {}

    def visit(task: Task) -> None:
        if task not in ordered:
            for need in task.needs.values():
                visit(need)
            ordered[task] = None

    for task in tasks:
        visit(task)
    return list(ordered)


def run(
    tasks: Iterable[Task],
    store: Store,
    engine: Engine,
    *,
    retry_failed: bool = False,
    close: bool = True,
    purpose: str = "",
    progress: Progress | None = None,
) -> Tally:
    """Get every task done that has no result yet, in order, as far as their needs allow.

    A task that fails is recorded and does not stop the others; one that failed before is tried again only
    with ``retry_failed``. Interrupting loses the tasks under way and nothing else. With ``close`` the engine
    ends with the last task; without, whoever made it closes it, and more tasks may follow. The folder keeps
    the ``purpose`` of a run beside its wall time and its machine.
    """
    plan = closure(tasks)
    try:
        with store.session(), listening(progress, "tasks") as report:
            return _Run(plan, store, engine, retry_failed, purpose).until_done(report)
    finally:
        if close:
            engine.close()


class _Run:
    def __init__(
        self, plan: list[Task], store: Store, engine: Engine, retry_failed: bool, purpose: str
    ) -> None:
        self.plan, self.store, self.engine, self.purpose = plan, store, engine, purpose
        self.done = {task for task in plan if store.has(task)}
        self.before = len(self.done)
        self.failed: set[Task] = set()
        for task in plan:
            if task not in self.done and store.failure(task) is not None:
                if retry_failed:
                    store.forget_failure(task)
                else:
                    self.failed.add(task)
        self.waiting = [task for task in plan if task not in self.done and task not in self.failed]
        self.flying: dict[str, Task] = {}
        self.deaths: dict[str, int] = {}
        self.figures: dict[str, float] = {}

    def until_done(self, report: Progress) -> Tally:
        while True:
            for task in self._ready(self.engine.slots - len(self.flying)):
                self._submit(task)
            self._beat(report)
            if not self.flying:
                break
            for hash, outcome in self.engine.next(timeout=1.0):
                self._returned(self.flying.pop(hash), outcome)
        self._beat(report, last=True)
        failed = tuple(task for task in self.plan if task in self.failed)
        return Tally(self.before, len(self.done) - self.before, failed, tuple(self.waiting))

    def _ready(self, room: int) -> Iterator[Task]:
        later = []
        for task in self.waiting:
            if room > 0 and all(need in self.done for need in task.needs.values()):
                room -= 1
                yield task
            else:
                later.append(task)
        self.waiting = later

    def _submit(self, task: Task) -> None:
        inputs = {role: self.store.read(need) for role, need in task.needs.items()}
        self.flying[task.hash] = task
        self.engine.submit(Job(task.hash, task.kind.function, task.kind.suffix, task.identity, inputs))

    def _returned(self, task: Task, outcome: Outcome | None) -> None:
        if outcome is None:
            self.deaths[task.hash] = self.deaths.get(task.hash, 0) + 1
            if self.deaths[task.hash] < LIVES:
                # last in line: the next worker to start, which may be killed too, begins with another task
                self.waiting.append(task)
                return
            outcome = Outcome(None, f"its worker died {LIVES} times (out of memory, or killed from outside)")
        self.store.keep(task, outcome)
        (self.done if outcome.data is not None else self.failed).add(task)

    def _beat(self, report: Progress, last: bool = False) -> None:
        if last or self.store.due():
            busy = [self.flying[hash] for hash in self.engine.running() if hash in self.flying]
            self.store.beat(busy, workers=self.engine.workers, engine=self.engine.name, purpose=self.purpose)
            left = seconds_left(self.store, self.plan, self.engine.workers)
            self.figures = {} if left is None else {"minutes left": left / 60}
        figures = self.figures | ({"failed": len(self.failed)} if self.failed else {})
        report(len(self.done) - self.before, len(self.plan) - self.before, figures)
