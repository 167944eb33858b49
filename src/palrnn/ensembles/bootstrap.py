"""`bootstrap`: models trained on data drawn anew from the data, and what varies over them.

FOLDER/palrnn.json   the marker: an ensemble was made here and may be continued
FOLDER/base/         the first model, an ordinary run, if it was trained here
FOLDER/members/      a sweep: a checkpoint per model
FOLDER/ensemble.json which of these are the ensemble that was made last, and around which model
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from palrnn.data import Dataset, DataSettings
from palrnn.data.packing import pack
from palrnn.engine import compile_time
from palrnn.engine.checks import Floats, as_instance, as_int, as_path, one_of
from palrnn.engine.files import write_json
from palrnn.engine.folders import writable_folder
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.engine.text import counted
from palrnn.ensembles.cleaning import cleaned, state_training
from palrnn.ensembles.ensemble import INDEX, Ensemble, ensemble_of, fingerprint, start_bytes
from palrnn.ensembles.work import BASE, DATA, ENOUGH_TRIALS, VARIED, VARIED_RULES, member_task, refit_task
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.model import checkpoint_from_bytes
from palrnn.runs import Reconstruction, reconstruct
from palrnn.runs.bars import ENSEMBLES
from palrnn.runs.reading import preparation
from palrnn.runs.training import sorted_settings
from palrnn.sweeps import Engine, Store, Task, engine_for
from palrnn.sweeps import run as run_tasks

_KIND = "ensemble"
# a model that starts from the first one takes a fifth of its updates; a varied one a tenth where SOAP trains
# it, but not below what that needs: longer trained ones have learned their blocks by heart
_WARM, _VARIED, _LEAST_VARIED = 5, 10, 3000
# as many models unless told: varied ones are trained anew, each with a refit if they are reflected
_MODELS, _FEW_MODELS = 50, 10
# updates that tell how long many take
_TRIED = 20


def bootstrap(
    x: Any,
    *,
    models: int | None = None,
    method: str | None = None,
    base: Reconstruction | None = None,
    block: int | None = None,
    updates: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    run: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], object] | None = None,
    **settings: Any,
) -> Ensemble:
    """Train ``models`` models on data drawn anew from ``x``, to see what the data leave open.

    ``method`` is "reflected" by default, which holds for invariants of chaotic models (docs/uncertainty.md);
    of a driven model it is "blocks".

    ``method="blocks"`` draws moving blocks of the part to train on (whole trials, if there are ten or more)
    and trains each model on as many rows as there were, from the first model on. ``method="seeds"`` trains
    on the same data from other random starts (a deep ensemble): that is how much chance decides, not how
    much the data do. ``method="denoised"`` draws blocks of the states that a smoother finds in the data, and
    trains each model from a random start: data and chance together, and less of the bias that noise of
    observation has on a forced model. It takes an AL-RNN, and a first model more. ``method="varied"`` draws
    blocks of the series without most of its noise (`smoothed`), starts anew, and varies size, forcing, noise
    on the inputs and learning rate from model to model (`varied`): the spread then shows some of the error
    that models of one kind share. ``method="reflected"`` adds a refit to each of these, trained in the same
    way on what the model makes by itself: what they get wrong in common shows there, and is taken off
    (`reflection`). It takes twice as long, and is the one for invariants of chaotic models.

    - ``x`` is anything that `reconstruct` takes; ``base`` is what it returned, or None to do that first, with
      ``settings``.
    - ``models``: how many (None: 10 varied or reflected ones, 50 others).
    - ``block``: rows of a block (None: two training sequences, at most a tenth of the data).
    - ``updates``: those of each model (None: a fifth of the first model's for blocks; a tenth, but at least
      3000, for varied and reflected ones by SOAP; otherwise as many as the first model; never more).
    - ``workers``: processes on this machine (None: one per core; then scripts need the usual
      ``if __name__ == "__main__":``; with 1 none is started), or a Dask cluster at ``scheduler``. The result
      does not depend on them.
    - ``run``: a folder from which the same call goes on after an interruption.
    - ``announce`` hears, before it begins, what will be trained and about how long that takes.
    """
    if method is not None:
        one_of(method, "method", ENSEMBLES)
    if models is not None:
        as_int(models, "models", least=2, most=100_000)
    seed = as_int(seed, "seed", most=None)
    if updates is not None:
        as_int(updates, "updates", least=1)
    data, training = sorted_settings(settings)
    if isinstance(x, Dataset) and data:
        raise ValueError(f"{min(data)} is a setting of Dataset.prepare, which has made x already")
    if base is not None:
        as_instance(base, "base", Reconstruction)
    known = {} if base is None or isinstance(x, Dataset) else data_of(base, x)
    dataset = x if isinstance(x, Dataset) else Dataset.prepare(x, **(known | data))
    if base is not None:
        if training:
            raise ValueError(f"{min(training)} is a setting of the first model, which base is already")
        if base.drift.observed_dim != dataset.training[0].shape[1]:
            raise ValueError("base must be a model of x, with as many columns")
        _check_past(base, dataset)
        given = 0 if dataset.inputs is None else len(dataset.inputs.columns)
        if base.drift.input_dim != given:
            raise ValueError(
                f"inputs must be the {base.drift.input_dim} that base was trained with, got {given}"
            )
    method = method or (ENSEMBLES[0] if dataset.inputs is None else "blocks")
    count = models or (_FEW_MODELS if method in VARIED else _MODELS)
    if dataset.inputs is not None and method in ("denoised", *VARIED):
        raise ValueError(f"method must be blocks or seeds for a driven model, got {method!r}")
    with _place(run) as folder, listening(progress, "models") as report:
        first = base
        if first is None:
            first = reconstruct(dataset, run=None if run is None else folder / "base", **training)
        config = _config(first, method, updates)
        trials = [first.standardizer.transform(trial) for trial in _raw(dataset)]
        drives = _drives(dataset, first)
        if method == "denoised":
            trials, config = cleaned(first.drift, trials, config, seed=seed)[0], state_training(config)
        how = {"method": method, "block": _block(trials, block, config), "seed": seed}
        if method in VARIED:  # the same models for both
            how |= {"method": VARIED[0], "rules": VARIED_RULES}
        with closing(engine_for(workers, scheduler)) as engine:
            work = (folder, first, (trials, drives), config, how, count, method == "reflected")
            found = _members(*work, engine, report, announce)
        checkpoints = [checkpoint_from_bytes(data) for data in found.values()]
        made = ensemble_of(first, checkpoints[:count], checkpoints[count:], method)
        if run is not None:
            names = list(found)
            index = {"base": fingerprint(start_bytes(first)), "method": method}
            write_json(folder / INDEX, index | {"members": names[:count], "refits": names[count:]})
    return made


def _members(
    folder: Path,
    base: Reconstruction,
    series: tuple[list[Floats], list[Floats] | None],
    config: TrainConfig,
    how: dict[str, Any],
    count: int,
    refits: bool,
    engine: Engine,
    report: Progress,
    announce: Callable[[str], object] | None,
) -> dict[str, bytes]:
    """Return the checkpoints of all models by their files, those that were there and those trained now.

    With ``refits`` theirs follow.
    """
    store, packed, start = Store(folder / "members"), pack(*series), start_bytes(base)
    given = {Task(DATA, fingerprint(packed)): packed, Task(BASE, fingerprint(start)): start}
    with writable_folder(store.folder, "sweep", "bootstrap"):
        for task, data in given.items():
            if not store.has(task):
                store.put(task, data)
    tasks = [member_task(number, config, how, *given) for number in range(count)]
    tasks += [refit_task(member, *given) for member in tasks] if refits else []
    left = sum(not store.has(task) for task in tasks)
    if announce is not None and left:
        rounds, what = -(-left // engine.workers), "models and a refit of each" if refits else "models"
        there = "" if left == len(tasks) else f", {left} of {len(tasks)} trainings to go"
        announce(
            f"training {count} {what}, {config.updates:,} updates each{there}: about "
            f"{_duration(rounds * _seconds(series, config))} with {counted(engine.workers, 'worker')}"
        )
    tally = run_tasks(tasks, store, engine, retry_failed=True, close=False, progress=report)
    if not tally.complete:
        why = (store.failure(tally.failed[0]) or "").strip().splitlines()[-1]
        raise RuntimeError(
            f"{len(tally.failed)} of {len(tasks)} models could not be trained; the first: {why}"
        )
    return {store.name(task): store.read(task) for task in tasks}


def _seconds(series: tuple[list[Floats], list[Floats] | None], config: TrainConfig) -> float:
    """Return how long one training takes, by a few updates of it."""
    seconds = 0.0
    for updates in (1, _TRIED):  # the first may compile
        few = config.changed(updates=updates, keep="last", evaluate_every=None)
        begun = time.monotonic() - compile_time.spent()
        with suppress(TrainingDivergedError):
            train(series[0], few, inputs=series[1], progress=quiet)
        seconds = time.monotonic() - compile_time.spent() - begun
    return seconds / _TRIED * config.updates


def _duration(seconds: float) -> str:
    for unit, size in (("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 2 * size:
            return counted(round(seconds / size), unit)
    return counted(max(1, round(seconds)), "second")


def _config(base: Reconstruction, method: str, updates: int | None) -> TrainConfig:
    config = None if base.record is None else base.record.training
    if config is None:
        raise ValueError("base must know how it was trained: make it by reconstruct")
    usual = config.updates
    if method == "blocks":
        usual = max(1, usual // _WARM)
    elif method in VARIED and config.optimizer == "soap":
        usual = min(usual, max(_LEAST_VARIED, usual // _VARIED))
    number = usual if updates is None else as_int(updates, "updates", least=1)
    plain: Mapping[str, Any] = {"updates": number}
    if method != "seeds":
        plain = {"updates": number, "keep": "last", "polish": 0, "evaluate_every": None}
    return config.changed(**plain)


def data_of(base: Reconstruction, x: Any) -> dict[str, Any]:
    """Return how `Dataset.prepare` makes of ``x`` what ``base`` learned from: columns, times, past, split."""
    data = None if base.record is None else base.record.data
    if data is None:
        return {}
    return preparation(x, data, base.drift.observed_dim) | {"test_fraction": data.test_fraction}


def _check_past(base: Reconstruction, dataset: Dataset) -> None:
    data = None if base.record is None else base.record.data
    if data is not None and data.past != DataSettings(**dataset.settings).past:
        (lags, delay), (own, apart) = data.past, DataSettings(**dataset.settings).past
        raise ValueError(
            f"lags and delay must be those of base, {lags} and {delay}, got {own} and {apart}: leave them out"
        )


def _raw(dataset: Dataset) -> list[Floats]:
    return [dataset.standardizer.inverse(trial) for trial in dataset.training]


def _drives(dataset: Dataset, base: Reconstruction) -> list[Floats] | None:
    """Return the inputs of the trials in the units of the first model, None where nothing drives it."""
    if dataset.inputs is None:
        return None
    own = dataset.inputs.standardizer
    return [base.scaled_inputs(own.inverse(drive)) for drive in dataset.inputs.training]


def _block(trials: list[Floats], block: int | None, config: TrainConfig) -> int:
    longest, least = max(map(len, trials)), config.sequence_length
    if len(trials) >= ENOUGH_TRIALS:
        if block is not None:
            raise ValueError(f"block must be None: of {len(trials)} trials, whole ones are drawn")
        return 0
    if block is None:
        return min(longest, max(least, min(2 * least, sum(map(len, trials)) // 10)))
    return as_int(block, "block", least=least, most=longest)


@contextmanager
def _place(run: str | os.PathLike[str] | None) -> Iterator[Path]:
    """The folder to work in: the one given, or one that is gone afterwards."""
    if run is None:
        with tempfile.TemporaryDirectory(prefix="palrnn-ensemble-") as name:
            yield Path(name)
        return
    with writable_folder(as_path(run, "run"), _KIND, "bootstrap") as folder:
        yield folder
