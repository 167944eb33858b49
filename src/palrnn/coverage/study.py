"""`coverage_study`: do the error bars hold? Tasks, tables, and the folder that they are kept in.

FOLDER/settings.toml     what is simulated, all of it
FOLDER/tasks/            a sweep: a file per model and per method; the same call goes on after a stop
FOLDER/coverage.csv      one row per truth, noise, length, method and thing asked; `wilson_interval` of shares
FOLDER/methods.csv       the same, with what is asked of a truth taken together
FOLDER/forecasts.csv     forecasts by lead; how far each is ahead of the networks on the same data sets

A table of which nothing is computed yet by today's rules is not there.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from palrnn.coverage.forecasting import NETWORKS, forecast_task
from palrnn.coverage.settings import CoverageSettings, TruthSettings, load_settings, settings_file
from palrnn.coverage.shares import wilson_interval
from palrnn.coverage.work import LEVELS, bars_task, model_task
from palrnn.engine.files import write_bytes
from palrnn.engine.folders import check_folder, writable_folder
from palrnn.engine.progress import Progress
from palrnn.engine.tables import from_records, write_table
from palrnn.sweeps import (
    Store,
    Tally,
    Task,
    archive_contents,
    closure,
    engine_for,
    sweep_status,
    write_archive,
)
from palrnn.sweeps import run as run_tasks
from palrnn.sweeps.archive import restore_times

Rows = list[dict[str, Any]]
_SETTINGS = "settings.toml"


@dataclass(frozen=True)
class CoverageStudy:
    """How the tasks went (None if only tables were asked for), and the tables by name."""

    tally: Tally | None
    tables: dict[str, Rows]


def coverage_study(
    folder: str | os.PathLike[str],
    *,
    scale: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    compute: bool = True,
    progress: Progress | None = None,
) -> CoverageStudy:
    """Do what is not done yet of the study in ``folder``, and write its tables.

    ``scale`` (smoke, quick, full, or a .toml file) is needed once for each folder. Without ``compute`` only
    the tables are written, of what is there.
    """
    settings, place = _settings(folder, scale), check_folder(folder, "sweep")
    tasks, tally = study_tasks(settings), None
    with closing(engine_for(workers, scheduler)) as engine, writable_folder(place, "sweep", "study coverage"):
        store = Store(place)
        if scale is not None and not (place / _SETTINGS).is_file():
            write_bytes(place / _SETTINGS, settings_file(scale).read_bytes())
        for task, data in archive_contents(store, tasks):
            store.put(task, data)
        restore_times(store)
        if compute:
            # models of an ensemble are not archived: those of bars that are there need not be trained again
            missing = [task for task in tasks if task.kind.archived and not store.has(task)]
            before = sum(store.has(task) for task in tasks)
            tally = run_tasks(
                missing,
                store,
                engine,
                retry_failed=retry_failed,
                close=False,
                purpose="coverage",
                progress=progress,
            )
            tally = replace(tally, before=before)
        tables = study_tables(settings, store)
        for name, rows in tables.items():
            table = place / f"{name}.csv"
            if rows:
                write_table(table, *from_records(rows), digits=6)
            else:  # one that is there was made by other rules
                table.unlink(missing_ok=True)
        if compute:  # tables alone lose nothing that was computed by other rules
            write_archive(store, tasks)
    return CoverageStudy(tally, tables)


def coverage_status(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what is done, running and failed in a folder of the study; see `sweep_status`."""
    settings, store = _settings(folder, None), Store(folder)
    tasks = study_tasks(settings)
    archived = {task for task, _ in archive_contents(store, tasks)}
    return {"scale": settings.scale} | sweep_status(store, tasks, archived)


def is_coverage_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether ``folder`` holds results of this study."""
    file = Path(folder) / _SETTINGS
    try:
        return file.is_file() and bool(load_settings(file).truths)
    except ValueError:
        return False


def study_tasks(settings: CoverageSettings) -> list[Task]:
    """Return all tasks, with what they need; all that is asked of first data sets before any second ones."""
    found = [
        (model.settings["number"] - each.first, _bars(model, method, each))
        for model, method, each in _plan(settings)
    ]
    found += list(enumerate(_forecast_tasks(settings)))
    return closure([task for _, task in sorted(found, key=lambda each: each[0])])


def _bars(model: Task, method: str, each: TruthSettings) -> Task:
    return bars_task(model, method, each.warm_updates, each.models, each.draws)


def _plan(settings: CoverageSettings) -> list[tuple[Task, str, TruthSettings]]:
    return [
        (model_task(each.name, noise, rows, number, each.updates), method, each)
        for each in settings.truths
        for number in range(each.first, each.first + each.datasets)
        for rows in each.rows
        for noise in each.noises
        for method in each.methods
    ]


def _forecast_tasks(settings: CoverageSettings) -> list[Task]:
    asked = settings.forecasts
    if asked is None:
        return []
    noise, plain = (0.0, asked.observation_std), asked.model_dump(mode="json")
    more = {name: plain[name] for name in _OF_FORECASTS}
    models = (
        model_task("lorenz63", noise, asked.rows, number, asked.updates)
        for number in range(asked.first, asked.first + asked.datasets)
    )
    return [forecast_task(model, more) for model in models]


_OF_FORECASTS = ("warm_updates", "models", "starts", "paths", "context", "reservoirs", "units")


def study_tables(settings: CoverageSettings, store: Store) -> dict[str, Rows]:
    """Return the tables of what is finished."""
    timings = store.timings()
    groups: dict[tuple[Any, ...], list[tuple[dict[str, Any], float]]] = {}
    for model, method, each in _plan(settings):
        task = _bars(model, method, each)
        found = store.result_or_empty(task)
        if found:
            of = model.settings
            key = (of["truth"], of["process"], of["observation"], of["rows"], method)
            # the models of an ensemble are tasks of their own
            spent = [task, *(need for role, need in task.needs.items() if role != "model")]
            seconds = sum(timings.get(each.hash, {}).get("seconds", np.nan) for each in spent)
            groups.setdefault(key, []).append((found, seconds))
    single, together = Rows(), Rows()
    for key, parts in groups.items():
        names = parts[0][0]["names"]
        kinds = [_kind(name) for name in names]
        for kind in dict.fromkeys(kinds):
            together.append(_row(key, kind, parts, [k for k, each in enumerate(kinds) if each == kind]))
        single += [_row(key, name, parts, [k]) for k, name in enumerate(names)]
    return {"coverage": single, "methods": together, "forecasts": _forecast_rows(settings, store)}


def _kind(name: str) -> str:
    return "exponent" if name == "exponent" else "fixed point" if name.startswith("fixed") else "parameters"


def _row(key: tuple[Any, ...], name: str, found: list[tuple[dict[str, Any], float]], which: list[int]) -> Any:
    row = dict(zip(("truth", "process", "observation", "rows", "method"), key, strict=True))
    row |= {"asked": name, "datasets": len(found)}
    truth = _column(found, "truth", which)
    for level in reversed(LEVELS):
        low, high = (_column(found, f"{end} {level:g}", which) for end in ("low", "high"))
        share = float(((low <= truth) & (truth <= high)).mean())
        # what is asked of one data set hangs together: there are as many tries as data sets
        least, most = wilson_interval(share, len(found))
        row |= {f"covered {level:g}": share, f"least {level:g}": least, f"most {level:g}": most}
        row[f"width {level:g}"] = _median(high - low)
    row["off"] = _median(_column(found, "model", which) - truth)
    row["without"] = float(np.isnan(_column(found, "low 0.9", which)).mean())
    notes = {name for result, _ in found for name in result["notes"]}
    for note in sorted(notes & {"negative", "null", "unidentified"}):
        row[note] = _median(np.array([result["notes"].get(note, np.nan) for result, _ in found]))
    row["seconds"] = _median(np.array([seconds for _, seconds in found]))
    return row


def _column(found: list[tuple[dict[str, Any], float]], name: str, which: list[int]) -> Any:
    values = np.array([[result[name][k] for k in which] for result, _ in found], dtype=np.float64)
    return values


def _median(values: Any) -> float:
    kept = values[~np.isnan(values)]
    return float(np.median(kept)) if kept.size else float("nan")


def _forecast_rows(settings: CoverageSettings, store: Store) -> Rows:
    parts: dict[tuple[str, float], list[dict[str, float]]] = {}
    for task in _forecast_tasks(settings):
        for each in store.result_or_empty(task).get("rows", ()):
            parts.setdefault((each["forecaster"], each["until"]), []).append(each)
    rows = Rows()
    for (name, until), scores in parts.items():
        row: dict[str, Any] = {"forecaster": name, "until": until, "datasets": len(scores)}
        columns = {what: np.array([score[what] for score in scores]) for what in ("coverage", "crps")}
        # on the same data sets: what makes one of these hard for all forecasters is not in the difference
        theirs = np.array([score["crps"] for score in parts[NETWORKS, until]])
        columns["crps beyond networks"] = columns["crps"] - theirs
        for what, values in columns.items():
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            row |= {what: float(values.mean()), f"{what} error": float(error)}
        rows.append(row)
    return rows


def _settings(folder: str | os.PathLike[str], scale: str | os.PathLike[str] | None) -> CoverageSettings:
    kept = Path(folder) / _SETTINGS
    if not kept.is_file():
        if scale is None:
            raise ValueError(f"{folder}: no results of `palrnn reproduce` here; it starts some with --scale")
        return load_settings(scale)
    settings = load_settings(kept)
    if scale is not None and load_settings(scale) != settings:
        raise ValueError(
            f"{folder}: holds results of other settings ({settings.scale}); choose another folder"
        )
    return settings
