"""The ways to error bars that are compared: a trained model and its data in, draws of models out.

- ``itf laplace``: the loss of teacher forcing taken for a likelihood, around the trained model.
- ``sandwich``, ``temperature``: the Gibbs posterior of teacher forcing, calibrated (`gibbs_posterior`).
- ``observed``: the exact observed information at the maximum of the likelihood (of a flow: at the trained
  model, with noise by the likelihood), restricted to the directions that it identifies.
- ``likelihood``: `likelihood_posterior`.
- ``blocks``: a bootstrap of moving blocks, each model trained on from the first (`bootstrap`);
  ``fresh blocks``: each from a random start; ``seeds``: other random starts on the same data;
  ``denoised blocks``: fresh blocks of the states that a smoother finds in the series (`cleaned`).
- ``varied``: fresh blocks of the series without most of its noise, by models of different sizes and forcings
  (`varied`), which are tasks of their own; ``reflected``: and a refit to each (`reflection`), likewise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats, one_of
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import generator, kernel_seed
from palrnn.ensembles.cleaning import cleaned, state_training
from palrnn.ensembles.work import resampled
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.geometry import gibbs_posterior, likelihood_posterior, observed_information
from palrnn.geometry.likelihood import with_fitted_noise
from palrnn.inference import FewPathsWarning
from palrnn.model import PALRNN

# the prior holds what data are silent about: in a map none of what is asked; in the model of a flow hidden
# units, which at ten times this let most draws diverge
_PRIOR, _HIDDEN_PRIOR = 0.1, 0.01
# rows of a window for the exact information, whose work grows with their square; and how many of them
_WINDOW, _WINDOWS = 100, 12
# hidden units make each window slow
_FEW = 3


@dataclass(frozen=True)
class Work:
    """A trained model, the series ``x`` that it was trained on in its coordinates, and how much to do."""

    model: Any
    x: Floats
    config: TrainConfig
    warm_updates: int
    models: int
    draws: int
    seed: int


@dataclass(frozen=True)
class Drawn:
    """Models that stand for what is not known, and what there is to say about them."""

    models: list[Any]
    notes: Mapping[str, float]


def drawn_models(method: str, work: Work) -> Drawn:
    """Return the draws of ``method``."""
    return _METHODS[one_of(method, "method", _METHODS)](work)


def _gibbs(calibration: str) -> Callable[[Work], Drawn]:
    def draw(work: Work) -> Drawn:
        hidden = work.model.latent_dim > work.model.observed_dim
        how: dict[str, Any] = {"prior_std": _HIDDEN_PRIOR if hidden else _PRIOR, "calibration": calibration}
        found = gibbs_posterior(work.model, work.x, work.config.forcing, **how)
        return Drawn(found.sample(work.draws, seed=work.seed), {"effective": found.effective_dimensions})

    return draw


def _likelihood(work: Work) -> Drawn:
    found = likelihood_posterior(work.model, work.x)
    notes = {"unidentified": found.unidentified, "left": found.left}
    return Drawn(found.sample(work.draws, seed=work.seed), notes)


def _observed(work: Work) -> Drawn:
    """The exact information of some windows, scaled to all rows."""
    hidden = work.model.latent_dim > work.model.observed_dim
    model = (
        with_fitted_noise(work.model, work.x) if hidden else likelihood_posterior(work.model, work.x).palrnn
    )
    # a first row is a measurement of its state
    model = PALRNN(
        model.drift, model.process, model.observation, model.gate_std, model.observation.typical_std
    )
    count = min(_FEW if hidden else _WINDOWS, (len(work.x) - 1) // _WINDOW)
    starts = np.linspace(0, len(work.x) - _WINDOW - 1, count).astype(int)
    total = np.zeros((model.drift.theta.size, model.drift.theta.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewPathsWarning)
        for number, start in enumerate(starts):
            rows = work.x[start : start + _WINDOW + 1]
            how: dict[str, Any] = {"particles": 64, "paths": 4, "passes": 1}
            seed = kernel_seed(work.seed, "window", number)
            total += observed_information(model, rows, seed=seed, **how).observed
    values, vectors = np.linalg.eigh(0.5 * (total + total.T) * (len(work.x) - 1) / (count * _WINDOW))
    kept = values > 1.0
    noise = generator(work.seed).standard_normal((work.draws, int(kept.sum())))
    thetas = model.drift.theta + noise / np.sqrt(values[kept]) @ vectors[:, kept].T
    notes = {"negative": int((values < -1.0).sum()), "null": int((np.abs(values) <= 1.0).sum())}
    return Drawn([model.drift.with_theta(theta) for theta in thetas], notes)


def block_length(config: TrainConfig, rows: int) -> int:
    """Return the rows of a block: two training sequences, at most a tenth of the data."""
    return max(config.sequence_length, min(2 * config.sequence_length, rows // 10))


def _ensemble(blocks: bool, warm: bool, states: bool = False) -> Callable[[Work], Drawn]:
    def draw(work: Work) -> Drawn:
        found, lost, x = [], 0, work.x
        if states:
            x = cleaned(work.model, [x], work.config, seed=work.seed)[0][0]
            work = replace(work, config=state_training(work.config))
        length = block_length(work.config, len(work.x))
        for number in range(work.models):
            trials = resampled([x], length, work.seed, number) if blocks else [x]
            config = work.config.changed(seed=kernel_seed(work.seed, "member", number))
            config = config.changed(updates=work.warm_updates) if warm else config
            try:
                found.append(train(trials, config, model=work.model if warm else None, progress=quiet).model)
            except TrainingDivergedError:
                lost += 1
        return Drawn(found, {"diverged": lost})

    return draw


_METHODS: dict[str, Callable[[Work], Drawn]] = {
    "itf laplace": _gibbs("none"),
    "observed": _observed,
    "likelihood": _likelihood,
    "sandwich": _gibbs("sandwich"),
    "temperature": _gibbs("temperature"),
    "blocks": _ensemble(blocks=True, warm=True),
    "fresh blocks": _ensemble(blocks=True, warm=False),
    "seeds": _ensemble(blocks=False, warm=False),
    "denoised blocks": _ensemble(blocks=True, warm=False, states=True),
}
