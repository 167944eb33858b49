"""`reconstruct`: from a series to a trained surrogate, with choices that suit the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palrnn.data import Dataset, DataSettings, noise_level
from palrnn.data.readers import named_array
from palrnn.data.source import IN_MEMORY, series_name
from palrnn.engine.checks import Floats, as_instance
from palrnn.engine.progress import Progress
from palrnn.forcing import TrainConfig, check_training, train
from palrnn.model import Forcing, Surrogate, family_name
from palrnn.runs.folder import HISTORY, Findings, RunFolder, block_means
from palrnn.runs.reconstruction import Reconstruction
from palrnn.runs.record import RunRecord

_LEAST_HELD_OUT = 40
# a training of so many updates is measured so often on the way, and the best model is kept
_LONG_TRAINING, _MEASURED = 10_000, 10
# and its model is polished in at most so many rounds, if long runs of it end
_POLISH = 16
# an AL-RNN of the usual size learns a series of fewer rows by heart; of so few columns a shallow PLRNN, whose
# state is the observation, does not; and RAdam, which gets less far, learns less by heart than SOAP
_SHORT, _FEW_COLUMNS = 1500, 6
_INPUT_NOISE = 0.02, 0.05
# where past values stand for what is not seen
_OF_PAST = Forcing.generalised(0.1)
_OF_SHORT: dict[str, Any] = {"family": "shallow", "hidden": 50, "forcing": Forcing.generalised(0.1)}


def reconstruct(
    x: Any = None,
    *,
    dt: float | None = None,
    latent_dim: int | None = None,
    gated: int | None = None,
    tau: int | None = None,
    forcing: Forcing | int | None = None,
    updates: int | None = None,
    columns: Sequence[str] | None = None,
    inputs: Any = None,
    lags: int | None = None,
    delay: int | None = None,
    test_fraction: float | None = None,
    seed: int | None = None,
    name: str | None = None,
    system: str | None = None,
    lyapunov: float | None = None,
    model: Surrogate | None = None,
    config: TrainConfig | None = None,
    run: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    on_data: Callable[[Dataset, TrainConfig], object] | None = None,
    **settings: Any,
) -> Reconstruction:
    """Train a surrogate of the system behind ``x``.

    ``x`` is a series ``(T, N)`` with time in rows, a list of trials, a data frame, a file, the name of a
    system to simulate, or a `Dataset`. NaN means not observed (`itf_loss`). What is None has the default of
    `Dataset.prepare` and `TrainConfig`, or is as the folder ``run`` says where training goes on there.

    - ``latent_dim`` (M) and ``gated`` (P): how rich a model. Fewer gates make a model that is easier to read,
      more make one that fits stronger nonlinearity. ``config=TrainConfig.paper()`` has the paper's settings.
      A series of fewer than 1,500 rows to train on, which would be learned by heart, is trained by RAdam, and
      if it has two to six columns gets a shallow PLRNN with 50 hidden units, forced by a tenth at every step,
      unless one of ``family``, ``latent_dim``, ``gated`` is given.
    - ``tau``: steps between forcings. None takes the time over which the part to train on remembers itself
      (`suggest_tau`), or, with past values among the columns, forcing of strength 0.1 at every step.
      ``forcing`` is any `Forcing` instead.
    - ``lags`` and ``delay``: with ``lags > 1`` past values become further coordinates (`delay_embed`), for
      systems that are observed in part only. Of one column they are chosen (`suggest_lags`) unless told.
    - ``inputs``: external inputs, one row for each row of ``x``, which drive the model, z' = F(z) + C s:
      names of columns of a table, or an array ``(T, K)`` (a list of them for trials).
    - ``dt``: time per step. Without it, rates such as Lyapunov exponents are per step.
    - ``system`` ("lorenz63", "rossler", ...) says that ``x`` was simulated, with ``dt``, so that floors and
      true exponents are computed from the system itself; ``lyapunov`` gives the largest true exponent where
      it is known.
    - ``test_fraction``: the last part of a series, held out to judge the model. Of several trials the last
      one is held out.
    - ``model``: a surrogate of any family to start from, instead of a random one.
    - ``run``: a folder to keep the run in. Training continues there after an interruption; ``x`` may then be
      left out, unless it was in memory.
    - ``config``: settings of training to start from; what is given beside them wins. A training of 10,000
      updates or more keeps the best of ten models measured on the way (``keep``, ``evaluate_every``), by
      D_stsp and by whether long runs of it live; they are measured on the part to train on. If runs of the
      best rest or cycle where the data do not, it is polished (`palrnn.polish`) in up to 16 rounds;
      ``polish=0`` leaves that out.
    - ``on_data``: is shown the `Dataset` before training starts, which tells what is used and left out, and
      the settings of training with what was chosen from it.
    - further ``settings`` are those of `Dataset.prepare` (``time``, ``trial``, ``process_std``, ...) and of
      `TrainConfig` (``sequence_length``, ``batch_size``, ...).
    """
    given = {name: value for name, value in locals().items() if name not in _OTHERS and value is not None}
    for name, value, kind in (("model", model, Surrogate), ("config", config, TrainConfig)):
        if value is not None:
            as_instance(value, name, kind)
    folder = None if run is None else RunFolder(run)
    before = None if folder is None else folder.read_record()
    data, training = sorted_settings(given | settings)
    if model is not None and not isinstance(x, Dataset):
        data = {"lags": 1} | data  # what the model observes is decided already
    known = {} if before is None or before.data is None else before.data.model_dump(exclude_none=True)
    dataset = prepared(x, data, known, "the run was trained on")
    if config is None and before is not None:
        config = before.training
    begun = None if before is None else before.training
    if (
        config is not None
        and begun is not None
        and "optimizer" not in config.model_fields_set | training.keys()
    ):
        config = config.changed(optimizer=begun.optimizer)  # what was usual then
    if config is not None and begun is not None and "polish" not in config.model_fields_set | training.keys():
        config = config.changed(polish=begun.polish)
    config = usual_config(dataset, training, config, model)
    if on_data is not None:
        on_data(dataset, config)
    record = RunRecord.of(dataset, config)
    measured, along = _measured_on(dataset, config)
    how: dict[str, Any] = {
        "model": model,
        "heldout": measured,
        "standardizer": dataset.standardizer,
        "dt": dataset.dt,
    }
    drive = dataset.inputs
    if drive is not None:
        how |= {"inputs": drive.training, "heldout_inputs": along, "input_standardizer": drive.standardizer}
    if folder is None:
        check_training(dataset.training, config, **how)
        result = train(dataset.training, config, progress=progress, **how)
    else:
        folder.check(_inputs(dataset))
        if before is not None:
            before.refuse_changes(record, folder.config)
        check_training(dataset.training, config, run=folder.path, **how)
        with folder.writing("train"):
            # whoever held the folder before may have written another run into it
            check_training(dataset.training, config, run=folder.path, **how)
            folder.write_reference(dataset.reference, None if drive is None else drive.reference)
            folder.write_record(record)
            result = train(dataset.training, config, run=folder.path, progress=progress, **how)
            result.history.to_csv(folder.path / HISTORY)
            if result.polish:
                folder.write_record(_with_polish(record, result.polish))
    if result.polish:
        record = _with_polish(record, result.polish)
    losses = block_means(list(enumerate(result.history.loss.tolist(), start=1)))
    return Reconstruction(
        result.model,
        dataset.standardizer,
        dataset.reference,
        system=dataset.true_system,
        forcing=result.forcing,
        dt=dataset.dt,
        record=record,
        losses=losses,
        measured=result.history.evaluations,
        name=dataset.name if folder is None or "name" in dataset.settings else folder.path.resolve().name,
        folder=folder,
        findings=Findings(folder),
        inputs=None if drive is None else drive.reference,
        input_standardizer=None if drive is None else drive.standardizer,
    )


_OTHERS = frozenset({"x", "run", "progress", "on_data", "model", "config", "settings"})


def sorted_settings(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the data, and those of training."""
    of_data = DataSettings.model_fields.keys() - {"series"}
    data = {name: value for name, value in given.items() if name in of_data}
    return data, {name: value for name, value in given.items() if name not in of_data}


def prepared(x: Any, given: Mapping[str, Any], known: dict[str, Any], work: str, **fixed: Any) -> Dataset:
    """Return the dataset of ``x``, long enough to judge a model by; settings not given are as before.

    ``known`` are those from before, if there are any, and ``work`` is what was done then, for errors.
    """
    if isinstance(x, Dataset):
        if given:
            raise ValueError(f"{min(given)} is a setting of Dataset.prepare, which has made x already")
        dataset = x
    else:
        series = known.pop("series", None)
        if x is None and series in (None, IN_MEMORY):
            again = "" if series is None else f", again: {work} data in memory"
            raise ValueError(f"x must be given{again}: a series, a file, or the name of a system")
        if x is not None and series_name(x) != series:
            known = {}
        if known.get("inputs") == IN_MEMORY and "inputs" not in given:
            raise ValueError(f"inputs must be given, again: {work} inputs in memory")
        dataset = Dataset.prepare(series if x is None else x, **(known | dict(given) | fixed))
    if len(dataset.reference) < _LEAST_HELD_OUT:
        raise ValueError(
            f"x must leave {_LEAST_HELD_OUT} steps to judge the model by, got {len(dataset.reference)}: "
            "give a longer series or a larger test_fraction"
        )
    return dataset


def has_few_columns(dataset: Dataset, lags: int | None = None) -> bool:
    """Return whether there are so few columns that a shallow PLRNN may be the better model.

    Its state is what is observed: of a single column, or one with its past (``lags``, those of the data set
    unless given), that is rarely all there is.
    """
    return 2 <= len(dataset.columns) <= _FEW_COLUMNS and (dataset.lags if lags is None else lags) == 1


def usual_config(
    dataset: Dataset,
    given: dict[str, Any],
    config: TrainConfig | None = None,
    model: Surrogate | None = None,
    lags: int | None = None,
) -> TrainConfig:
    """Return the settings of training, with what nobody has given chosen to suit the data.

    ``lags`` are those that a data set without any is to have.
    """
    config, lags = config or TrainConfig(), lags or dataset.lags
    if model is not None:
        sizes = {"latent_dim": model.latent_dim, "gated": model.gated, "hidden": None}
        given |= {"family": family_name(model), **sizes}
    known = config.model_fields_set | given.keys()
    choices: dict[str, Any] = {"sequence_length": dataset.sequence_length(config.sequence_length)}
    if is_short(dataset):
        choices["optimizer"] = usual_optimizer(dataset)
    sized = known & {"family", "latent_dim", "gated", "hidden"}
    if is_short(dataset) and has_few_columns(dataset, lags) and not sized:
        choices |= _OF_SHORT
    elif lags > 1:
        choices["forcing"] = _OF_PAST
    if known & {"alpha", "final_alpha", "alpha_schedule"}:
        choices.pop("forcing", None)
    if not known & {"forcing", "tau"} and "forcing" not in choices:
        choices["tau"] = dataset.suggested_tau
    elif "tau" in known:
        choices.pop("forcing", None)
    choices["input_noise"] = input_noise(dataset)
    updates = given.get("updates", config.updates)
    if not known & {"keep", "evaluate_every"} and isinstance(updates, int) and updates >= _LONG_TRAINING:
        choices |= {"keep": "best", "evaluate_every": updates // _MEASURED}
    if isinstance(updates, int) and updates >= _LONG_TRAINING and dataset.inputs is None:
        choices["polish"] = _POLISH
    chosen = config.changed(**({name: v for name, v in choices.items() if name not in known} | given))
    return chosen.fitted(dataset.training[0].shape[1] // dataset.lags * lags)


def is_short(dataset: Dataset) -> bool:
    """Return whether there are so few rows that a model of the usual size would learn them by heart."""
    return dataset.training_steps < _SHORT


def usual_optimizer(dataset: Dataset) -> str:
    """Return the optimiser that suits the data: SOAP learns a short series by heart."""
    return "radam" if is_short(dataset) else TrainConfig().optimizer


def input_noise(dataset: Dataset) -> float:
    """Return the input noise that suits the data: as much as they have themselves, within bounds.

    Less lets some models die, more blurs what they learn. A short series gets the most, against learning it
    by heart.
    """
    longest = max(dataset.training, key=len)
    if is_short(dataset) or len(longest) < _LEAST_HELD_OUT or np.isnan(longest).all(axis=0).any():
        return _INPUT_NOISE[1]
    return round(float(np.clip(noise_level(longest).mean(), *_INPUT_NOISE)), 3)


def _measured_on(dataset: Dataset, config: TrainConfig) -> tuple[Floats, Floats | None]:
    """Return what the model is measured on during training: the end of the longest trial to train on.

    The held-out part chooses nothing, and is seen once, at the end. Beside it, its inputs.
    """
    longest = max(range(len(dataset.training)), key=lambda k: len(dataset.training[k]))
    end = slice(-max(_LEAST_HELD_OUT, config.evaluate_steps - config.evaluate_discard), None)
    drive = None if dataset.inputs is None else dataset.inputs.training[longest][end]
    return dataset.training[longest][end], drive


def _with_polish(record: RunRecord, words: str) -> RunRecord:
    return record.changed(run=record.run.changed(polish=words))


def _inputs(dataset: Dataset) -> list[Path]:
    series, _ = named_array(str(dataset.settings["series"]))
    return [series] if series.is_file() else []
