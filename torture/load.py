"""A thousand small tasks over workers that keep dying: every result once, and memory that stays flat.

python -m torture.load local|dask FOLDER --tasks 1000 --seed 0      prints what it saw as JSON
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])
os.environ["DASK_DISTRIBUTED__LOGGING__DISTRIBUTED"] = "critical"

from oracles.rehearsal import SUM  # noqa: E402

from palrnn.engine.progress import quiet  # noqa: E402
from palrnn.sweeps import ClusterEngine, LocalEngine, Store, Task, run  # noqa: E402


def resident() -> float:
    """Return the memory that this process holds now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


class Killer(threading.Thread):
    """Kills a random worker every so often, and notes memory on the way.

    Between two kills some task must get done: a task whose workers die three times is rightly given up.
    """

    def __init__(self, results: Path, workers: Any, replace: Any, seed: int, every: float) -> None:
        super().__init__(daemon=True)
        self.results, self.workers, self.replace, self.every = results, workers, replace, every
        self.rng, self.done = np.random.default_rng(seed), threading.Event()
        self.kills, self.memory = 0, []

    def run(self) -> None:
        """Kill until done."""
        before = 0
        while not self.done.wait(float(self.rng.uniform(0.5, 1.5) * self.every)):
            self.memory.append(resident())
            alive, finished = self.workers(), sum(1 for _ in self.results.glob("*.json"))
            if alive and finished >= before + 2:
                before = finished
                victim = alive[int(self.rng.integers(len(alive)))]
                try:
                    os.kill(victim, signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    continue
            self.replace()


def swept(engine: str, folder: Path, count: int, seed: int, every: float) -> dict[str, Any]:
    """Sweep ``count`` tasks, killing a worker about ``every`` seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [Task(SUM, {"number": k, "seconds": 0.02}) for k in range(count)]
    store, results = Store(folder / "run"), folder / "run" / "tasks" / SUM.name
    begun = time.monotonic()
    if engine == "local":
        place: Any = LocalEngine(2)
        killer = Killer(results, lambda: _children(place), lambda: None, seed, every)
        killer.start()
        tally = run(tasks, store, place, progress=quiet)
    else:
        with _Cluster(folder) as cluster:
            place = ClusterEngine(cluster.address)
            killer = Killer(results, cluster.workers, cluster.replace, seed, every)
            killer.start()
            tally = run(tasks, store, place, progress=quiet)
            killer.done.set()
            killer.join()
    killer.done.set()
    memory = killer.memory or [resident()]
    files = [path for path in results.iterdir() if not path.name.endswith(".failed.json")]
    numbers = Counter(json.loads(file.read_text())["result"]["total"] for file in files)
    faults = [] if tally.complete else [f"{len(tally.failed)} tasks failed"]
    if numbers != Counter(range(count)):
        faults.append(f"{len(files)} files for {count} tasks")
    quarter = max(1, len(memory) // 4)
    growth = float(np.mean(memory[-quarter:]) - np.mean(memory[quarter : 2 * quarter] or memory[:1]))
    if growth > 30.0:
        faults.append(f"memory grew by {growth:.0f} MB")
    return {
        "engine": engine,
        "tasks": len(files),
        "kills": killer.kills,
        "seconds": round(time.monotonic() - begun, 1),
        "megabytes": round(max(memory)),
        "growth": round(growth, 1),
        "faults": faults,
    }


def _children(engine: Any) -> list[int]:
    processes = [worker.process for worker in engine._workers]
    found = []
    for process in processes:
        try:
            if process is not None and process.pid is not None:
                found.append(process.pid)
        except ValueError:  # closed in the meantime
            continue
    return found


class _Cluster:
    """A Dask scheduler with two workers on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._processes = folder, []

    def __enter__(self) -> _Cluster:
        file = self._folder / "scheduler.json"
        self._scheduler = self._spawn(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        end = time.monotonic() + 60
        while not (file.is_file() and file.read_text().endswith("}")):
            if time.monotonic() > end:
                raise TimeoutError("no scheduler came up")
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.replace()
        return self

    def replace(self) -> None:
        """Start workers until there are two."""
        self._processes = [process for process in self._processes if process.poll() is None]
        while len(self._processes) < 2:
            options = [
                "--nthreads",
                "1",
                "--no-nanny",
                "--no-dashboard",
                "--local-directory",
                str(self._folder),
            ]
            self._processes.append(self._spawn("worker", self.address, *options))

    def workers(self) -> list[int]:
        """The workers' process numbers; never the last one alive, so that there is progress."""
        alive = [process.pid for process in self._processes if process.poll() is None]
        return alive[:1] if len(alive) > 1 else []

    def _spawn(self, what: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __exit__(self, *_: object) -> None:
        for process in [*self._processes, self._scheduler]:
            process.kill()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["local", "dask"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=2.0)
    given = parser.parse_args()
    print(json.dumps(swept(given.engine, given.folder, given.tasks, given.seed, given.every)))
