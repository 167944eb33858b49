"""`palrnn status`: what is done, running and failed in a results folder, and the time left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app


@app.command("status", epilog="Example: palrnn status results/paper")
def status_command(
    folder: Annotated[Path, typer.Argument(help="The folder that `palrnn reproduce` writes to.")],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Show what is done, running and failed, and how long the rest will take."""
    from palrnn.experiments.status import sweep_status

    status = sweep_status(folder)
    Voice(json, quiet).result(status, _words(status))


def _words(status: dict[str, Any]) -> str:
    lines = [f"{status['scale']} scale: {status['done']} of {status['total']} tasks done"]
    for kind, counts in status["kinds"].items():
        trouble = f", {counts['failed']} failed" if counts["failed"] else ""
        lines.append(f"  {kind:12} {counts['done']:5} of {counts['total']}{trouble}")
    run = status["run"]
    if status["alive"]:
        lines.append(
            f"running on {run['host']} (process {run['pid']}, {run['engine']}, {run['workers']} workers)"
        )
        lines += [f"  {task['kind']} {task['label']}" for task in run["running"]]
    elif run:
        ago = _duration(time.time() - run["heartbeat"])
        cut = f", {len(run['running'])} tasks were cut off" if run["running"] else ""
        lines.append(f"not running; the last sign of life was {ago} ago{cut}")
    lines += [f"failed: {task['kind']} {task['label']}: {task['error']}" for task in status["failed"]]
    if status["done"] < status["total"]:
        left = status["seconds_left"]
        pace = f"with {status['workers']} workers, at the pace so far"
        lines.append(
            f"time left: about {_duration(left)} {pace}" if left is not None else "time left: unknown yet"
        )
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
