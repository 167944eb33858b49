"""Posteriors of a run's drift by name, and the curvature gap of one model: the parts of its error bars."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.data import Dataset
from palrnn.engine.checks import Floats, one_of
from palrnn.geometry import (
    IndefiniteInformationWarning,
    ITFOperator,
    ModelDraws,
    curvature_gap,
    gibbs_posterior,
    likelihood_posterior,
    observed_information,
)
from palrnn.geometry.gibbs import CALIBRATIONS
from palrnn.geometry.itf import ForcedDivergenceError
from palrnn.inference import FewPathsWarning, FilterDiedError
from palrnn.model import PALRNN, Forcing, drift_of

if TYPE_CHECKING:
    from palrnn.runs.reconstruction import Reconstruction
    from palrnn.runs.settings import BarSettings

# a dense curvature of more parameters than this takes minutes; its leading part then speaks for it
_DENSE, _LEADING = 1000, 200


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


def posterior(run: Reconstruction, method: str, data: Any, settings: BarSettings) -> ModelDraws:
    """Return the posterior of this name; of several trials, the longest speaks for all."""
    one_of(method, "draws", ("likelihood", *CALIBRATIONS))
    if run.drift.input_dim:
        raise ValueError("draws must be given for a driven model, as a posterior or an ensemble")
    dataset = training_data(run, data)
    raw = max((dataset.standardizer.inverse(trial) for trial in dataset.training), key=len)
    x = run.standardizer.transform(raw)
    if method == "likelihood":
        return likelihood_posterior(run.model, x)
    leading = _LEADING if run.drift.theta.size > _DENSE else None
    how: dict[str, Any] = {"prior_std": settings.prior_std, "calibration": method, "leading": leading}
    return gibbs_posterior(run.drift, x, run.forcing, **how)


def digest(draws: ModelDraws, settings: BarSettings) -> str:
    """Return a name for the models that are drawn."""
    models = draws.sample(settings.count, seed=settings.seed)
    thetas = np.array([drift_of(model).theta for model in models])
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
