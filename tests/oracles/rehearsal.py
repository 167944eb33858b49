"""Tasks with known answers, to rehearse the task engine: sums, failures, and ones that kill their worker."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from palrnn.sweeps import Kind, Task

SUM = Kind("sum", "oracles.rehearsal:total")
FAIL = Kind("fail", "oracles.rehearsal:fail")
MURDER = Kind("murder", "oracles.rehearsal:murder")


def total(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Add a number to the totals of what is needed, take ``seconds``, and leave a line in ``diary``.

    With ``gate``, end only once that file exists.
    """
    if "diary" in settings:
        with Path(settings["diary"]).open("a") as stream:
            stream.write(f"{settings['number']}\n")
    time.sleep(settings.get("seconds", 0.0))
    if "gate" in settings:
        _wait_for(Path(settings["gate"]))
    return {
        "total": settings["number"] + sum(json.loads(data)["result"]["total"] for data in inputs.values())
    }


def fail(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Fail, unless the file ``cure`` exists."""
    if not Path(settings["cure"]).exists():
        raise ZeroDivisionError("nothing to divide")
    return {"total": 1}


def murder(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Kill the worker process in the first ``spare`` attempts, which the file ``tally`` counts."""
    tally = Path(settings["tally"])
    attempts = len(tally.read_text()) if tally.exists() else 0
    tally.write_text("x" * (attempts + 1))
    if attempts < settings["spare"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"total": attempts}


def _wait_for(file: Path) -> None:
    # longer than any test waits, but not forever: a worker that its test left behind must end as well
    end = time.monotonic() + 300
    while not file.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{file} did not come")
        time.sleep(0.02)


def chain(count: int, *, gate: str | None = None, free: int = 0, **extra: Any) -> list[Task]:
    """Return ``count`` sums and one sum over all of them; all but the first ``free`` wait for ``gate``."""
    gates = [{} if gate is None or k < free else {"gate": gate} for k in range(count)]
    leaves = [Task(SUM, {"number": k, **gates[k], **extra}, label=f"number {k}") for k in range(count)]
    return [
        *leaves,
        Task(SUM, {"number": 1000, **extra}, {f"leaf{k:03}": leaf for k, leaf in enumerate(leaves)}),
    ]
