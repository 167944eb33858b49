"""Several models side by side: a pool of processes, one BLAS thread each, the same results for any size."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from palrnn.data import Standardizer
from palrnn.engine.checks import as_instance, as_int
from palrnn.engine.processors import available_processors
from palrnn.engine.progress import Progress, listening
from palrnn.forcing.config import TrainConfig
from palrnn.forcing.trainer import TrainResult, train

_POLL_SECONDS = 0.25


def train_many(
    x: ArrayLike | Sequence[ArrayLike],
    configs: Sequence[TrainConfig],
    *,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    workers: int | None = None,
    runs: Sequence[str | os.PathLike[str]] | None = None,
    heldout: ArrayLike | None = None,
    heldout_inputs: ArrayLike | None = None,
    standardizer: Standardizer | None = None,
    input_standardizer: Standardizer | None = None,
    dt: float | None = None,
    progress: Progress | None = None,
) -> list[TrainResult]:
    """Train one model per configuration on the same ``x`` and return their results in the same order.

    ``workers`` processes (by default one per core) take the models one after the other; the results do not
    depend on their number. ``runs`` names a folder per model, from which an interrupted call continues; an
    interruption (Ctrl-C) stops every model after its present block of updates. If a model diverges, the
    others are finished first, and its `TrainingDivergedError` is raised then, with a note that says which it
    was. Processes are started afresh ("spawn"), so scripts need the usual ``if __name__ == "__main__":``.
    """
    configs = [as_instance(c, "configs", TrainConfig) for c in as_instance(configs, "configs", list, tuple)]
    folders: list[Path | None] = [None] * len(configs) if runs is None else [Path(run) for run in runs]
    if len(folders) != len(configs):
        raise ValueError(f"runs must name one folder per configuration, {len(configs)}, got {len(folders)}")
    if len({str(folder.resolve()) for folder in folders if folder is not None}) < sum(
        f is not None for f in folders
    ):
        raise ValueError("runs must name different folders")
    workers = available_processors() if workers is None else as_int(workers, "workers", least=1)
    shared: dict[str, Any] = {"x": x, "inputs": inputs, "heldout": heldout, "heldout_inputs": heldout_inputs}
    shared |= {"standardizer": standardizer, "input_standardizer": input_standardizer, "dt": dt}
    tasks = list(zip(configs, folders, strict=True))
    with listening(progress, "training") as report:
        outcomes = _outcomes(tasks, shared, min(workers, len(tasks)), report)
    for i, outcome in enumerate(outcomes):
        if isinstance(outcome, BaseException):
            outcome.add_note(f"this was configuration {i} of {len(configs)}")
            raise outcome
    return [outcome for outcome in outcomes if isinstance(outcome, TrainResult)]


def _outcomes(
    tasks: list[tuple[TrainConfig, Path | None]], shared: Mapping[str, Any], workers: int, report: Progress
) -> list[TrainResult | BaseException]:
    total = sum(config.updates for config, _ in tasks)
    if workers <= 1:
        return [_outcome_here(i, tasks, shared, total, report) for i in range(len(tasks))]
    context = multiprocessing.get_context("spawn")
    done, stop = context.Array("q", len(tasks)), context.Event()
    pool = ProcessPoolExecutor(workers, context, _start_worker, (dict(shared), done, stop))
    try:
        futures = [
            pool.submit(_train_in_worker, i, config, folder) for i, (config, folder) in enumerate(tasks)
        ]
        waiting: set[Future[TrainResult]] = set(futures)
        while waiting:
            _, waiting = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
            report(sum(done[:]), total, {"models done": len(futures) - len(waiting)})
    except BaseException:
        # cancelling reaches neither the models that train nor those handed to a process already
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [future.exception() or future.result() for future in futures]


def _outcome_here(
    i: int,
    tasks: list[tuple[TrainConfig, Path | None]],
    shared: Mapping[str, Any],
    total: int,
    report: Progress,
) -> TrainResult | BaseException:
    config, folder = tasks[i]
    before = sum(earlier.updates for earlier, _ in tasks[:i])

    def forward(done: int, _: int, figures: Mapping[str, float]) -> None:
        report(before + done, total, {"models done": i, **figures})

    try:
        return train(config=config, run=folder, progress=forward, **shared)
    except ArithmeticError as error:
        return error


_worker: dict[str, Any] = {}


def _start_worker(shared: dict[str, Any], done: Any, stop: Any) -> None:
    _worker.update(shared=shared, done=done, stop=stop)


def _train_in_worker(i: int, config: TrainConfig, folder: Path | None) -> TrainResult:
    def note(done: int, _: int, figures: Mapping[str, float]) -> None:
        _worker["done"][i] = done
        go_on()

    def go_on() -> None:
        if _worker["stop"].is_set():
            raise KeyboardInterrupt  # on which `train` saves its state

    go_on()
    return train(config=config, run=folder, progress=note, **_worker["shared"])
