"""`palrnn reproduce`: the paper's studies, from nothing to figures, resumable at any moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

if TYPE_CHECKING:
    from palrnn.experiments.runner import Engine, Tally

_EXAMPLES = """Examples: palrnn reproduce all --scale smoke -o results/smoke;
palrnn reproduce gap --scale paper -o results/paper --scheduler tcp://host:8786"""


@app.command("reproduce", epilog=_EXAMPLES)
def reproduce_command(
    study: Annotated[
        str, typer.Argument(help="toy, checkpoints, gap, evidence, diagnostics, attractor, or all.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the results.")],
    scale: Annotated[
        str | None, typer.Option(help="smoke, quick, paper, or a .toml file. Kept in the folder.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Local worker processes; by default one per core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on the Dask cluster at tcp://host:port instead.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed tasks again.")] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run the paper's studies and draw its figures. The same command continues after any interruption."""
    from palrnn.engine.checks import one_of
    from palrnn.experiments.presets import preset_in
    from palrnn.experiments.runner import run
    from palrnn.experiments.store import Store
    from palrnn.experiments.studies import STUDIES, study_tasks

    voice = Voice(json, quiet)
    one_of(study, "study", (*STUDIES, "all"))
    preset = preset_in(output, scale)
    tasks = study_tasks(preset, STUDIES if study == "all" else [study])
    voice.compiling()
    tally = run(
        tasks,
        Store(output),
        _engine(workers, scheduler),
        retry_failed=retry_failed,
        progress=voice.progress(study),
    )
    voice.result(_values(tally), _words(tally))
    if not tally.complete:
        raise typer.Exit(1)


def _engine(workers: int | None, scheduler: str | None) -> Engine:
    from palrnn.experiments.cluster import ClusterEngine
    from palrnn.experiments.local import LocalEngine

    if scheduler is None:
        return LocalEngine(workers)
    if workers is not None:
        raise ValueError("--workers is for this machine, --scheduler for a cluster: give one of them")
    return ClusterEngine(scheduler)


def _values(tally: Tally) -> dict[str, object]:
    failed = [{"kind": task.kind.name, "label": task.label, "hash": task.hash} for task in tally.failed]
    return {"before": tally.before, "done": tally.done, "failed": failed, "blocked": len(tally.blocked)}


def _words(tally: Tally) -> str:
    lines = [f"{tally.done} tasks done now, {tally.before} before"]
    lines += [f"failed: {task.kind.name} {task.label} ({task.hash})" for task in tally.failed]
    if tally.blocked:
        lines.append(f"{len(tally.blocked)} tasks wait for a failed one")
    if tally.failed:
        lines.append("tracebacks are in tasks/KIND/HASH.failed.json; --retry-failed tries again")
    return "\n".join(lines)
