"""`palrnn reproduce`: the paper's studies, from nothing to figures, resumable at any moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app

if TYPE_CHECKING:
    from palrnn.experiments.presets import Preset
    from palrnn.experiments.runner import Engine, Tally

_EXAMPLES = """Examples: palrnn reproduce all --scale smoke -o results/smoke;
palrnn reproduce gap --scale paper -o results/paper --scheduler tcp://host:8786;
palrnn reproduce report -o results/paper --page docs/fidelity.md"""


@app.command("reproduce", epilog=_EXAMPLES)
def reproduce_command(
    study: Annotated[
        str,
        typer.Argument(
            help="toy, checkpoints, gap, evidence, diagnostics, attractor, or all of them; "
            "report: only figures and summary, from the tables."
        ),
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
    page: Annotated[
        Path | None,
        typer.Option(
            help="Also write the comparison with the paper as a Markdown page, with the folder's notes.md."
        ),
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run the paper's studies and draw its figures. The same command continues after any interruption."""
    from palrnn.engine.checks import one_of
    from palrnn.experiments.archive import unpack
    from palrnn.experiments.presets import preset_in
    from palrnn.experiments.runner import run
    from palrnn.experiments.store import Store
    from palrnn.experiments.studies import STUDIES, study_tasks

    voice = Voice(json, quiet)
    one_of(study, "study", (*STUDIES, "all", "report"))
    preset, store = preset_in(output, scale), Store(output)
    tally = None
    if study != "report":
        unpack(preset, store)
        tasks = study_tasks(preset, STUDIES if study == "all" else [study])
        voice.compiling()
        tally = run(
            tasks,
            store,
            _engine(workers, scheduler),
            retry_failed=retry_failed,
            progress=voice.progress(study),
        )
    summary = _reported(preset, output, page)
    voice.result(_values(tally, summary), _words(tally, summary, output))
    if tally is not None and not tally.complete:
        raise typer.Exit(1)


def _reported(preset: Preset, output: Path, page: Path | None) -> dict[str, Any]:
    """Write tables and archive from results, if there are any; then summary and figures from the tables."""
    from palrnn.engine.files import write_text
    from palrnn.experiments.archive import pack
    from palrnn.experiments.fidelity import fidelity_page
    from palrnn.experiments.store import Store
    from palrnn.experiments.summary import write_summary
    from palrnn.experiments.tables import write_tables
    from palrnn.report.paper_figures import draw_figures

    store = Store(output)
    if (output / "tasks").is_dir():
        write_tables(preset, store)
        pack(preset, store)
    summary = write_summary(output)
    draw_figures(output)
    if page is not None:
        notes = output / "notes.md"
        words = notes.read_text(encoding="utf-8") if notes.is_file() else ""
        figures = Path(os.path.relpath(output / "figures", page.parent)).as_posix()
        write_text(page, fidelity_page(summary, output.as_posix(), words, figures))
    return summary


def _engine(workers: int | None, scheduler: str | None) -> Engine:
    from palrnn.experiments.cluster import ClusterEngine
    from palrnn.experiments.local import LocalEngine

    if scheduler is None:
        return LocalEngine(workers)
    if workers is not None:
        raise ValueError("--workers is for this machine, --scheduler for a cluster: give one of them")
    return ClusterEngine(scheduler)


def _values(tally: Tally | None, summary: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"verdicts": summary["verdicts"]}
    if tally is not None:
        failed = [{"kind": task.kind.name, "label": task.label, "hash": task.hash} for task in tally.failed]
        values |= {
            "before": tally.before,
            "done": tally.done,
            "failed": failed,
            "blocked": len(tally.blocked),
        }
    return values


def _words(tally: Tally | None, summary: dict[str, Any], output: Path) -> str:
    lines = []
    if tally is not None:
        lines.append(f"{tally.done} tasks done now, {tally.before} before")
        lines += [f"failed: {task.kind.name} {task.label} ({task.hash})" for task in tally.failed]
        if tally.blocked:
            lines.append(f"{len(tally.blocked)} tasks wait for a failed one")
        if tally.failed:
            lines.append("tracebacks are in tasks/KIND/HASH.failed.json; --retry-failed tries again")
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in summary["verdicts"].items())
    lines.append(f"tables, summary.json and figures are in {output}; claims: {verdicts}")
    return "\n".join(lines)
