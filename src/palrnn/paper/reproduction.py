"""The studies from nothing to figures: what `palrnn reproduce` and `palrnn status` do."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palrnn.engine.checks import one_of
from palrnn.engine.files import write_text
from palrnn.engine.folders import check_file, check_folder, writable_folder
from palrnn.engine.progress import Progress
from palrnn.paper.archive import archive_results, restore_results, results_in_archive
from palrnn.paper.fidelity import TITLE, fidelity_page
from palrnn.paper.figures import draw_figures
from palrnn.paper.presets import Preset, keep_preset, preset_in
from palrnn.paper.study import studies_in, study_tasks
from palrnn.paper.summary import write_summary
from palrnn.paper.tables import write_tables
from palrnn.sweeps import ClusterEngine, Engine, LocalEngine, Store, Tally, run, sweep_status


@dataclass(frozen=True)
class Reproduction:
    """How the tasks went (None if only the report was asked for), and the summary of all results so far."""

    tally: Tally | None
    summary: dict[str, Any]


def reproduce(
    study: str,
    folder: str | os.PathLike[str],
    *,
    scale: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    page: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Do the tasks of a study that are not done yet; write tables, summary and figures.

    "all" are all studies, "paper" those of the paper itself.

    "report" does no tasks. ``scale`` (smoke, quick, paper, or a .toml file) is needed once for each folder.
    Tasks run in ``workers`` processes here (default: one per core), or on the Dask cluster at ``scheduler``.
    ``page`` is a Markdown file for the comparison with the paper, with the folder's ``notes.md``.
    """
    preset = preset_in(folder, scale)
    names = [found.name for found in studies_in(preset)]
    one_of(study, "study", (*names, "all", "paper", "report"))
    place = check_folder(folder, "sweep")
    if page is not None and not check_file(page, TITLE.encode()).parent.is_dir():
        raise ValueError(f"{page}: the folder {Path(page).parent} does not exist")
    if study == "report":
        with writable_folder(place, "sweep", "reporting"):
            return Reproduction(None, _report(keep_preset(place, scale), place, page))
    with closing(_engine(workers, scheduler)) as engine, writable_folder(place, "sweep", f"study {study}"):
        preset, store = keep_preset(place, scale), Store(place)
        restore_results(preset, store)
        whole = study in ("all", "paper")
        tasks = study_tasks(preset.of_paper if study == "paper" else preset, None if whole else [study])
        tally = run(tasks, store, engine, retry_failed=retry_failed, purpose=study, progress=progress)
        return Reproduction(tally, _report(preset, place, page))


def results_status(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what is done, running and failed in a results folder, and the seconds left; see `sweep_status`.

    All studies of the folder's preset count, whether or not they were asked for yet. Results that are in the
    archive only, as in a fresh clone, count as done.
    """
    preset, store = preset_in(folder), Store(folder)
    archived = {task for task, _ in results_in_archive(preset, store)}
    return {"scale": preset.scale} | sweep_status(store, study_tasks(preset), archived)


def _report(preset: Preset, place: Path, page: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Write tables and archive from results, if there are any; then summary and figures from the tables."""
    store = Store(place)
    if (place / "tasks").is_dir():
        write_tables(preset, store)
        archive_results(preset, store)
    summary = write_summary(preset, place)
    draw_figures(preset, place)
    if page is not None:
        notes = place / "notes.md"
        words = notes.read_text(encoding="utf-8") if notes.is_file() else ""
        figures = Path(os.path.relpath(place / "figures", Path(page).parent)).as_posix()
        write_text(page, fidelity_page(summary, place.as_posix(), words, figures))
    return summary


def _engine(workers: int | None, scheduler: str | None) -> Engine:
    if scheduler is None:
        return LocalEngine(workers)
    if workers is not None:
        raise ValueError("--workers is for this machine, --scheduler for a cluster: give one of them")
    return ClusterEngine(scheduler)
