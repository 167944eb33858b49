"""Tasks with known answers, to rehearse the task engine: sums, failures, and ones that kill their worker."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from palrnn.experiments import Kind, Task

SUM = Kind("sum", "oracles.rehearsal:total")
FAIL = Kind("fail", "oracles.rehearsal:fail")
MURDER = Kind("murder", "oracles.rehearsal:murder")


def total(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Add a number to the totals of what is needed, take ``seconds``, and leave a line in ``diary``."""
    if "diary" in settings:
        with Path(settings["diary"]).open("a") as stream:
            stream.write(f"{settings['number']}\n")
    time.sleep(settings.get("seconds", 0.0))
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


def chain(count: int, **extra: Any) -> list[Task]:
    """Return ``count`` sums and one sum over all of them."""
    leaves = [Task(SUM, {"number": k, **extra}, label=f"number {k}") for k in range(count)]
    return [
        *leaves,
        Task(SUM, {"number": 1000, **extra}, {f"leaf{k:03}": leaf for k, leaf in enumerate(leaves)}),
    ]
