"""`palrnn status`: what is done, running and failed in a results folder, and the time left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.terminal import listing


@app.command("status", epilog="Example: palrnn status results/paper")
def status_command(
    folder: Annotated[Path, typer.Argument(help="The folder that `palrnn reproduce` writes to.")],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Show what is done, running and failed, and how long the rest will take."""
    from palrnn.coverage import coverage_status, is_coverage_folder
    from palrnn.paper import results_status

    status = coverage_status(folder) if is_coverage_folder(folder) else results_status(folder)
    Voice(json, quiet).result(status, *_parts(status))


def _parts(status: dict[str, Any]) -> list[Any]:
    kinds = [
        (kind, counts["done"], counts["failed"], counts["total"]) for kind, counts in status["kinds"].items()
    ]
    parts: list[Any] = [
        f"{status['scale']} scale: {status['done']} of {status['total']} tasks done",
        listing(("task", "done", "failed", "of"), kinds),
    ]
    run = status["run"]
    if status["alive"]:
        where = f"process {run['pid']}, {run['engine']}, {run['workers']} workers"
        parts.append(f"running on {run['host']} ({where})")
        parts += [f"  {task['kind']} {task['label']}" for task in run["running"]]
    elif run:
        # the clock may have been set back since
        ago = _duration(max(0.0, time.time() - run["heartbeat"]))
        cut = f", {len(run['running'])} tasks were cut off" if run["running"] else ""
        parts.append(f"not running; the last sign of life was {ago} ago{cut}")
    if status["failed"]:
        failed = [(task["kind"], task["label"], task["error"]) for task in status["failed"]]
        parts.append(listing(("failed", "task", "error"), failed))
    if status["done"] < status["total"]:
        left = status["seconds_left"]
        pace = f"with {status['workers']} workers, at the pace so far"
        parts.append(
            f"time left: about {_duration(left)} {pace}" if left is not None else "time left: unknown yet"
        )
    return parts


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
