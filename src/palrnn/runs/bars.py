"""What error bars of a run are made of: posteriors and ensembles by name, the curvature gap of one model."""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.data import Dataset
from palrnn.engine.checks import Floats, one_of
from palrnn.engine.gaps import first_whole_row
from palrnn.engine.progress import Progress
from palrnn.geometry import (
    POSTERIORS,
    Bars,
    IndefiniteInformationWarning,
    InvariantErrorBars,
    ITFOperator,
    ModelDraws,
    curvature_gap,
    invariant_error_bars,
    laplace,
    model_bars,
    observed_information,
    parameter_posterior,
)
from palrnn.geometry.itf import ForcedDivergenceError
from palrnn.geometry.reflection import has_refits
from palrnn.inference import FewPathsWarning, FilterDiedError
from palrnn.invariants import samples_flow
from palrnn.invariants.quantities import first_point
from palrnn.model import PALRNN, Forcing, drift_of
from palrnn.runs.folder import ENSEMBLE

if TYPE_CHECKING:
    from palrnn.runs.reconstruction import Reconstruction
    from palrnn.runs.settings import BarSettings
    from palrnn.runs.state import RunState

#: Ensembles that `palrnn.bootstrap` trains, the recommended one first.
ENSEMBLES = ("reflected", "varied", "blocks", "denoised", "seeds")
#: All names of error bars.
METHODS = (*ENSEMBLES, *POSTERIORS)
# what draws a posterior rather than an ensemble: as many, unless told
_DRAWS = 20
# a dense curvature of more parameters than this takes minutes; its leading part then speaks for it
_DENSE, _LEADING = 1000, 200
# of a true system, to tell whether it is sampled finely enough
_ROWS = 2000
#: To be raised when figures are measured otherwise: bars that were kept before are computed again then, and
#: not shown. 3: exponents are of the flow, where the held-out rows and the run of the model sample one.
RULES = 3


def has_flow(run: Reconstruction) -> bool:
    """Return whether exponents of ``run`` are those of a flow, in its score card and in its error bars alike.

    The true system says so where it is known: the held-out rows may have too much noise to tell.
    """
    series = run.held if run.system is None else run.system.simulate(_ROWS, dt=run.dt or 1.0, discard=_ROWS)
    start = first_point(series, run.standardizer, run.drift.observed_dim)
    return samples_flow(run.drift, series, start)


def training_data(run: Reconstruction, data: Any = None) -> Dataset:
    """Return what ``run`` was trained on: ``data`` as given, or prepared again from its file."""
    if isinstance(data, Dataset):
        return data
    record = run.record.data
    known = {} if record is None else record.model_dump(exclude_none=True)
    if data is not None:
        how = {name: value for name, value in known.items() if name not in ("series", "inputs")}
        return Dataset.prepare(data, **how)
    if record is None:
        raise ValueError("data must be given: the run does not know what it was trained on")
    return Dataset.from_settings(known)


def recommended(run: Reconstruction) -> str:
    """Return the method for invariants, as docs/uncertainty.md has it; varied models take no inputs yet."""
    return "blocks" if run.drift.input_dim else ENSEMBLES[0]


def posterior(run: Reconstruction, method: str, data: Any, settings: BarSettings) -> ModelDraws:
    """Return the posterior of this name; of several trials, the longest speaks for all."""
    one_of(method, "draws", POSTERIORS)
    if run.drift.input_dim:
        raise ValueError("draws must be given for a driven model, as a posterior or an ensemble")
    dataset = training_data(run, data)
    raw = max((dataset.standardizer.inverse(trial) for trial in dataset.training), key=len)
    x = run.standardizer.transform(raw)
    if method in ("likelihood", "observed"):
        return parameter_posterior(run.model, x, method)
    leading = _LEADING if run.drift.theta.size > _DENSE else None
    how: dict[str, Any] = {"prior_std": settings.prior_std, "leading": leading}
    return parameter_posterior(run.drift, x, method, forcing=run.forcing, **how)


def ensemble(run: Reconstruction, method: str, data: Any, **settings: Any) -> Any:
    """Return models trained beside that of ``run``, in its folder where it has one that can be written.

    The room that trains them stands below this one, and is named as a task of a sweep names its function.
    """
    folder = run.folder
    if folder is not None and folder.is_writable:
        settings = {"run": folder.ensemble_folder()} | settings
    train = importlib.import_module("palrnn.ensembles").bootstrap
    return train(training_data(run, data), base=run, method=method, **settings)


def kept_ensemble(run: RunState) -> Any:
    """Return the ensemble that was trained last in the folder of ``run``, if it is of this very model."""
    if run.folder is None or not (run.folder.findings / ENSEMBLE).is_dir():
        return None
    read = importlib.import_module("palrnn.ensembles").Ensemble.kept
    return read(run.folder.findings / ENSEMBLE, run)


def digest(draws: ModelDraws, settings: BarSettings) -> str:
    """Return a name for the models that are drawn."""
    models = draws.sample(settings.count or _DRAWS, seed=settings.seed)
    if has_refits(draws):
        again = (draws.refit_of(model) for model in models)  # type: ignore[attr-defined]
        models += [each for each in again if each is not None]
    thetas = np.concatenate([drift_of(model).theta for model in models])
    return hashlib.sha256(thetas.tobytes()).hexdigest()[:20]


def gap(model: PALRNN, x: Floats, forcing: Forcing) -> float:
    """Return the curvature gap of ``model`` on the rows ``x``, NaN where it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewPathsWarning)
            warnings.simplefilter("ignore", IndefiniteInformationWarning)
            observed = observed_information(model, x, particles=64, passes=1, paths=8)
            itf = ITFOperator(model.drift, x, forcing.final, model.observation).trace()
            return curvature_gap(itf, observed.trace_observed, len(x))
    except (FilterDiedError, ForcedDivergenceError, ArithmeticError):
        return float("nan")


def drawn(
    run: Reconstruction, draws: ModelDraws | str, data: Any, settings: BarSettings, **training: Any
) -> tuple[str, Any, BarSettings]:
    """Return how models are drawn, what from (what was given, or what has this name), and how many."""
    found: Any = draws
    name = draws if isinstance(draws, str) else type(draws).__name__
    if isinstance(draws, str):
        if one_of(draws, "draws", METHODS) in ENSEMBLES:
            if settings.count is not None:
                training = {"models": settings.count} | training
            found = ensemble(run, draws, data, seed=settings.seed, **training)
        else:
            found = posterior(run, draws, data, settings)
    models = getattr(found, "models", None)
    if settings.count is None or (isinstance(draws, str) and models is not None):
        # of an ensemble each model once that counts
        settings = settings.changed(count=_DRAWS if models is None else max(2, len(models)))
    return getattr(found, "method", name), found, settings


def measured(
    run: Reconstruction, method: str, draws: Any, settings: BarSettings, progress: Progress | None
) -> Bars:
    """Return the intervals of models drawn from ``draws`` on the held-out part of ``run``."""
    first = first_whole_row(run.held, "reference")

    def extra(drift: Any) -> dict[str, float]:
        rows = run.x[first : first + settings.gap_rows]
        return {"curvature gap": gap(run.probabilistic.with_drift(drift), rows, run.forcing)}

    return model_bars(
        draws,
        run.held[first:],
        method=method,
        standardizer=run.standardizer,
        dt=run.dt or 1.0,
        columns=run.columns,
        extra=extra if settings.gap_rows else None,
        flow=has_flow(run),
        progress=progress,
        **settings.model_dump(include={"count", "steps", "discard", "seed"}),
    )


def of_informations(
    run: Reconstruction, informations: Mapping[str, Any], prior_std: float, **how: Any
) -> dict[str, InvariantErrorBars]:
    """Return the invariants of models drawn from the Laplace posterior of each of ``informations``."""
    steps = min(10_000, max(1000, len(run.held)))
    how |= {"standardizer": run.standardizer, "steps": steps, "dt": run.dt or 1.0, "inputs": run.s}
    how["flow"] = has_flow(run)
    return {
        name: invariant_error_bars(laplace(run.drift, found, prior_std=prior_std), run.held, **how)
        for name, found in informations.items()
    }
