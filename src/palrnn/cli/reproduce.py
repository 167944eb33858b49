"""`palrnn reproduce`: the paper's studies and that of error bars, from nothing to tables and figures."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.terminal import listing
from palrnn.paper import studies

if TYPE_CHECKING:
    from palrnn.sweeps import Tally

# the names of the files are those of the studies, which would take a second to load
_NAMES = ", ".join(module.name for module in pkgutil.iter_modules(studies.__path__))
_COVERAGE = "coverage"
_EXAMPLES = """Examples: palrnn reproduce all --scale smoke -o results/smoke;
palrnn reproduce gap --scale paper -o results/paper --scheduler tcp://host:8786;
palrnn reproduce report -o results/paper --page docs/fidelity.md"""


@app.command("reproduce", epilog=_EXAMPLES)
def reproduce_command(
    study: Annotated[
        str,
        typer.Argument(
            help=f"{_NAMES}, or all of these; paper: those of the paper itself; coverage: do error bars hold "
            "(not the paper's); report: only tables, figures and summary, of what is there.",
        ),
    ],
    # not a Path, which takes an empty name for the current folder
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="The folder of the results.")
    ],
    scale: Annotated[
        str | None,
        typer.Option(help="smoke, quick, paper (of coverage: full), or a .toml file. Kept in the folder."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Local worker processes; by default one per core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on the Dask cluster at tcp://host:port instead.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed tasks again.")] = False,
    page: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also write the comparison with the paper as a Markdown page, with the folder's notes.md; "
            "of coverage: write the tables between the marks of a page.",
        ),
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run the paper's studies and draw its figures. The same command continues after any interruption."""
    from palrnn.coverage import is_coverage_folder
    from palrnn.paper import reproduce

    voice = Voice(json, quiet)
    voice.compiling()
    if study == _COVERAGE or (study == "report" and is_coverage_folder(output)):
        how: dict[str, Any] = {"scale": scale, "workers": workers, "scheduler": scheduler}
        how |= {"retry_failed": retry_failed, "compute": study == _COVERAGE}
        _reproduce_coverage(voice, output, page, how)
        return
    done = reproduce(
        study,
        output,
        scale=scale,
        workers=workers,
        scheduler=scheduler,
        retry_failed=retry_failed,
        page=page,
        progress=voice.progress(study),
    )
    verdicts = done.summary["verdicts"]
    values: dict[str, Any] = {"verdicts": verdicts}
    parts: list[Any] = []
    if done.tally is not None:
        values |= _values(done.tally)
        parts += _parts(done.tally)
    claims = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    parts.append(f"tables, summary.json and figures are in {output}; claims: {claims}")
    voice.result(values, *parts)
    if done.tally is not None and not done.tally.complete:
        raise typer.Exit(1)


def _reproduce_coverage(voice: Voice, output: str, page: str | None, how: dict[str, Any]) -> None:
    from palrnn.coverage import coverage_study, update_page

    done = coverage_study(output, progress=voice.progress(_COVERAGE), **how)
    if page is not None:
        update_page(page, output)
    columns = ("truth", "process", "observation", "rows", "asked", "method", "datasets", "covered 0.9")
    rows = [tuple(row[name] for name in columns) for row in done.tables["methods"]]
    values = {"methods": done.tables["methods"], "forecasts": done.tables["forecasts"]}
    parts: list[Any] = [listing(columns, rows)]
    if done.tally is not None:
        values |= _values(done.tally)
        parts += _parts(done.tally)
    voice.result(values, *parts, f"tables are in {output}")
    if done.tally is not None and not done.tally.complete:
        raise typer.Exit(1)


def _values(tally: Tally) -> dict[str, Any]:
    failed = [{"kind": task.kind.name, "label": task.label, "hash": task.hash} for task in tally.failed]
    return {"before": tally.before, "done": tally.done, "failed": failed, "blocked": len(tally.blocked)}


def _parts(tally: Tally) -> list[Any]:
    parts: list[Any] = [f"{tally.done} tasks done now, {tally.before} before"]
    if tally.failed:
        rows = [(task.kind.name, task.label, task.hash) for task in tally.failed]
        parts.append(listing(("failed", "task", "hash"), rows))
    if tally.blocked:
        parts.append(f"{len(tally.blocked)} tasks wait for a failed one")
    if tally.failed:
        parts.append("tracebacks are in tasks/KIND/HASH.failed.json; --retry-failed tries again")
    return parts
