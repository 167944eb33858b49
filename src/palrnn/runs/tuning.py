"""Tuning a run by evidence: which data tune and which judge, the settings that fit them, and the folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn import __version__
from palrnn.data import Dataset, Standardizer, lorenz63
from palrnn.data.readers import named_array
from palrnn.data.systems import make_system
from palrnn.engine.checks import Floats
from palrnn.engine.gaps import first_whole_row
from palrnn.engine.progress import Progress
from palrnn.engine.seeds import kernel_seed
from palrnn.invariants.free_run import free_run
from palrnn.model import save_checkpoint
from palrnn.runs.folder import HISTORY, Findings, RunFolder
from palrnn.runs.reading import preparation
from palrnn.runs.record import RunRecord, TuningSettings, TuningTask
from palrnn.tuning import (
    Comparison,
    SAEMConfig,
    SAEMResult,
    check_saem,
    compare,
    comparison_configs,
    lorenz63_sequences,
    saem,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from palrnn.runs.reconstruction import Reconstruction

#: The name of the paper's data for tuning: four noisy sequences of Lorenz-63, and as many to judge by.
PAPER_DATA = "lorenz63"


def chosen_task(
    run: Reconstruction, task: TuningTask | None, series: Any, changes: dict[str, Any]
) -> tuple[Reconstruction, TuningTask, Dataset]:
    """Return what is tuned, how, and on what, with all that was left open chosen."""
    task = task or TuningTask()
    own = {name: value for name, value in changes.items() if name in TuningTask.model_fields}
    saem = {name: value for name, value in changes.items() if name not in own}
    task = task.changed(saem=task.saem.changed(**saem), **({"checkpoint": run.source} | own))
    if isinstance(series, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(series))
        task = task.changed(series=PAPER_DATA if series == PAPER_DATA else path)
    run = run.with_noise(task.process_std, task.observation_std, task.gate_std)
    data = tuning_data(run, task, series)
    return run, task.changed(saem=fit_config(task.saem, data, run)), data


def tuning_data(run: Reconstruction, task: TuningTask, series: Any = None) -> Dataset:
    """Return the data to tune on and to judge by; see `TuningTask`.

    Other series than the run's own are prepared as that was: the same columns, times, trials and past.
    """
    if isinstance(series, Dataset):
        return series
    series = task.series if series is None else series
    scale = run.standardizer if task.standardize == "checkpoint" else None
    if series is None:
        half = len(run.held) // 2
        parts = [run.held[:half]], [run.held[half:]]
        how: dict[str, Any] = {"standardizer": scale, "dt": run.dt, "name": run.name}
        if run.s is not None and run.inputs is not None:
            how |= {"training_inputs": [run.inputs[:half]], "heldout_inputs": [run.inputs[half:]]}
            how["input_standardizer"] = _input_scale(run)
        return Dataset.from_parts(*parts, **how)
    if isinstance(series, str) and series == PAPER_DATA:
        return _paper_data(task, scale)
    how = {"test_fraction": task.test_fraction, "dt": run.dt, "standardizer": scale}
    how |= preparation(series, run.record.data, run.drift.observed_dim)
    if run.drift.input_dim:
        data = run.record.data
        if data is None or not isinstance(data.inputs, tuple):
            raise ValueError(
                "series must be a Dataset with inputs: it is not known which columns drive the model"
            )
        how |= {"inputs": data.inputs, "input_standardizer": _input_scale(run)}
    return Dataset.prepare(series, **how)


def _input_scale(run: Reconstruction) -> Standardizer:
    count = run.drift.input_dim
    return run.input_standardizer or Standardizer(np.zeros(count), np.ones(count))


def _paper_data(task: TuningTask, scale: Any) -> Dataset:
    """Return the paper's data; the held-out sequences are long enough for all held-out windows."""
    config, seed = task.saem, task.data_seed
    steps = 1000 + max(4000, -(-config.heldout_windows // 4) * config.length + 1)
    length = max(2, config.rollout_steps - config.rollout_discard)
    return Dataset.from_parts(
        list(lorenz63_sequences(seed=kernel_seed(seed, "tuning"))),
        list(lorenz63_sequences(steps=steps, seed=kernel_seed(seed, "held out"))),
        reference=lorenz63(length, seed=kernel_seed(seed, "reference")),
        standardizer=scale,
        dt=0.01,
        name=PAPER_DATA,
        system=make_system("lorenz63"),
    )


def fit_config(config: SAEMConfig, data: Dataset, run: Reconstruction) -> SAEMConfig:
    """Return ``config`` with what it leaves open chosen for the run and its data.

    Forcing and time step are those of the run; windows and rollouts are no longer than the data. What was
    given stays as it is.
    """
    given = config.model_fields_set
    shortest = min(map(len, (*data.training, *data.heldout_trials)))
    length = config.length
    if "length" not in given:
        length = min(length, max(2, (shortest - 1) // 4))
    if shortest <= length:
        raise ValueError(f"{data.source} is too short for windows of {length} steps: it has {shortest}")
    windows = sum((len(part) - 1) // length for part in data.heldout_trials)
    kept = max(100, min(9000, len(data.reference)))
    choices: dict[str, Any] = {
        "length": length,
        "forcing": run.forcing,
        "dt": data.dt or run.dt or 1.0,
        "reference_lyapunov": data.lyapunov if data.lyapunov is not None else run.record.lyapunov,
        "heldout_windows": min(config.heldout_windows, windows),
        "rollout_steps": config.rollout_discard + kept,
    }
    return config.changed(**{name: value for name, value in choices.items() if name not in given})


def parts(data: Dataset) -> dict[str, Any]:
    """Return the standardised series as `saem` and `compare` want them."""
    found: dict[str, Any] = {
        "sequences": data.training,
        "heldout": data.heldout_trials,
        "reference": data.standardizer.transform(data.reference),
        "standardizer": data.standardizer,
    }
    if data.inputs is not None:
        found |= {"inputs": data.inputs.training, "heldout_inputs": data.inputs.heldout_trials}
        found |= {"reference_inputs": data.inputs.heldout, "input_standardizer": data.inputs.standardizer}
    return found


def tune_run(
    run: Reconstruction,
    task: TuningTask,
    data: Dataset,
    *,
    folder: RunFolder | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Reconstruction:
    """Return what particle-SAEM makes of ``run``, kept in ``folder`` if there is one."""
    how = {"config": task.saem, "seed": task.seed, **parts(data)}
    record = run.record.changed(tuning=task, comparison=None)
    if folder is None:
        result = saem(run.probabilistic, threads=threads, progress=progress, **how)
    else:
        folder.check(_inputs(run, data))
        _refuse_changes(folder, record)
        check_saem(run.probabilistic, run=folder.path, **how)
        with folder.writing("tune"):
            check_saem(run.probabilistic, run=folder.path, **how)
            _begin(folder, record, run, data)
            where: dict[str, Any] = {"threads": threads, "progress": progress, "run": folder.path}
            result = saem(run.probabilistic, **how, **where)
            _write_history(folder.path, run, result, data)
    return replace(
        run,
        model=result.model,
        standardizer=data.standardizer,
        input_standardizer=None if data.inputs is None else data.inputs.standardizer,
        record=record,
        saem=result,
        name=f"{run.name}, {task.saem.configuration}" if folder is None else folder.path.resolve().name,
        folder=folder,
        findings=Findings(folder),
    )


def compare_runs(
    run: Reconstruction,
    settings: TuningSettings,
    data: Dataset,
    *,
    path: Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return configurations of tuning side by side; below a ``path``, each continues in its own folder."""
    how = {**parts(data), "seed": settings.task.seed, "threads": threads, "progress": progress}
    return compare(run.probabilistic, configs=_configs(settings), run=path, **how)


def compare_beside(
    folder: RunFolder | None, run: Reconstruction, settings: TuningSettings, data: Dataset, **how: Any
) -> Comparison:
    """Return the same, each in a folder among the findings of the run, if it has a ``folder`` of its own."""
    if folder is None or not folder.is_writable:
        return compare_runs(run, settings, data, **how)
    with folder.writing("tuning"):
        # wherever the folder is, and whatever the series is called
        settings_alone = settings.task.model_dump(mode="json", exclude={"checkpoint", "series"})
        key = json.dumps([__version__, run.fingerprint(), data.fingerprint, settings_alone])
        place = folder.tuning_folder(hashlib.sha256(key.encode()).hexdigest()[:12])
        return compare_runs(run, settings, data, path=place, **how)


def _configs(settings: TuningSettings) -> dict[str, SAEMConfig]:
    named = comparison_configs(settings.task.saem, settings.betas).items()
    anchored = {name: config for name, config in named if config.configuration == "anchored"}
    return {name: config for name, config in named if name in settings.configurations} | anchored


def compare_in_folder(
    folder: RunFolder,
    run: Reconstruction,
    settings: TuningSettings,
    data: Dataset,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return the same, with a run folder of its own: tables, pictures, and the model that is chosen."""
    from palrnn.engine.style import save_figure
    from palrnn.report.tuning_figures import tradeoff_figure

    record = run.record.changed(tuning=None, comparison=settings)
    folder.check(_inputs(run, data))
    _refuse_changes(folder, record)
    how = {**parts(data), "seed": settings.task.seed}
    for name, config in _configs(settings).items():
        check_saem(run.probabilistic, config=config, run=folder.path / name, **how)
    with folder.writing("tune"):
        _begin(folder, record, run, data)
        found = compare_runs(run, settings, data, path=folder.path, threads=threads, progress=progress)
        found.to_csv(folder.path / "comparison.csv")
        save_figure(tradeoff_figure(found), folder.path / "tradeoff.png")
        for name, result in found.results.items():
            _write_history(folder.path / name, run, result, data)
        if found.chosen is not None:
            chosen = found.results[found.chosen]
            save_checkpoint(
                folder.checkpoint,
                chosen.model,
                standardizer=data.standardizer,
                dt=chosen.config.dt,
                forcing=run.forcing,
                input_standardizer=None if data.inputs is None else data.inputs.standardizer,
            )
    return found


def _refuse_changes(folder: RunFolder, record: RunRecord) -> None:
    before = folder.read_record()
    if before is not None:
        before.refuse_changes(record, folder.config)
    elif folder.checkpoint.exists():
        raise ValueError(f"{folder.path}: holds a model, but not how it was made; choose another folder")


def _begin(folder: RunFolder, record: RunRecord, run: Reconstruction, data: Dataset) -> None:
    """Write what a tuning starts with: the record last, by which it is known to have been started."""
    if not folder.config.exists():
        if run.reference is None:
            folder.write_reference(data.reference, None if data.inputs is None else data.inputs.reference)
        else:
            folder.write_reference(run.reference, run.inputs)
        folder.write_record(record)


def _inputs(run: Reconstruction, data: Dataset) -> list[Path]:
    series, _ = named_array(str(data.settings.get("series", "")))
    held = [] if run.folder is None else [run.folder.checkpoint]
    return [*held, *([series] if series.is_file() else [])]


def _write_history(folder: Path, run: Reconstruction, result: SAEMResult, data: Dataset) -> None:
    """Write history.csv and before_after.png of one tuning."""
    from palrnn.engine.style import save_figure

    result.history.to_csv(folder / HISTORY)
    save_figure(before_after(run, result, data), folder / "before_after.png")


def before_after(run: Reconstruction, result: SAEMResult, data: Dataset) -> Figure:
    """Return the picture of a tuning: attractors before and after, evidence, noise and invariants."""
    from palrnn.report.tuning_figures import before_after_figure

    config = result.config
    truth = data.standardizer.transform(data.reference)
    span = config.rollout_steps - config.rollout_discard, config.rollout_discard
    models: Mapping[str, Any] = {
        "Before, hard gates": run.drift,
        "After, hard gates": result.model.drift,
        "After, sampled": result.model,
    }
    first = first_whole_row(truth, "reference")
    drive = None if data.inputs is None else np.roll(data.inputs.heldout, -first, axis=0)
    runs = {title: _observed(model, truth[first], *span, drive) for title, model in models.items()}
    pictures = {title: data.standardizer.inverse(x) for title, x in ({"Reference": truth} | runs).items()}
    return before_after_figure(result.history, pictures, reference_lyapunov=config.reference_lyapunov)


def _observed(model: Any, x1: Floats, steps: int, discard: int, drive: Floats | None) -> Floats:
    """Return what is seen of a free run; one that diverges within the transient is shown from its start."""
    run = free_run(model, x1, steps, discard, inputs=drive)
    return run.observed if len(run) else free_run(model, x1, steps + discard, inputs=drive).observed
