"""The ways to error bars that are compared: a trained model and its data in, draws of models out.

- ``itf laplace``: the loss of teacher forcing taken for a likelihood, around the trained model.
- ``sandwich``, ``temperature``: the Gibbs posterior of teacher forcing, calibrated (`gibbs_posterior`).
- ``observed``: the exact observed information at the maximum of the likelihood (of a flow: at the trained
  model, with noise by the likelihood), restricted to the directions that it identifies
  (`observed_posterior`).
- ``likelihood``: `likelihood_posterior`.
- ``blocks``: a bootstrap of moving blocks, each model trained on from the first (`bootstrap`);
  ``fresh blocks``: each from a random start; ``seeds``: other random starts on the same data;
  ``denoised blocks``: fresh blocks of the states that a smoother finds in the series (`cleaned`).
- ``varied``: fresh blocks of the series without most of its noise, by models of different sizes and forcings
  (`varied`), which are tasks of their own; ``reflected``: and a refit to each (`reflection`), likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from palrnn.engine.checks import Floats, one_of
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import kernel_seed
from palrnn.ensembles.cleaning import cleaned, state_training
from palrnn.ensembles.work import resampled
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.geometry import parameter_posterior

# what posteriors say about themselves
_NOTES = {name: name for name in ("unidentified", "left", "negative", "null")}
_NOTES["effective"] = "effective_dimensions"


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


def _posterior(method: str) -> Callable[[Work], Drawn]:
    def draw(work: Work) -> Drawn:
        how: dict[str, Any] = {"seed": work.seed} if method == "observed" else {}
        found: Any = parameter_posterior(work.model, work.x, method, forcing=work.config.forcing, **how)
        notes = {name: getattr(found, of) for name, of in _NOTES.items() if hasattr(found, of)}
        return Drawn(found.sample(work.draws, seed=work.seed), notes)

    return draw


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
    "itf laplace": _posterior("laplace"),
    "observed": _posterior("observed"),
    "likelihood": _posterior("likelihood"),
    "sandwich": _posterior("sandwich"),
    "temperature": _posterior("temperature"),
    "blocks": _ensemble(blocks=True, warm=True),
    "fresh blocks": _ensemble(blocks=True, warm=False),
    "seeds": _ensemble(blocks=False, warm=False),
    "denoised blocks": _ensemble(blocks=True, warm=False, states=True),
}
