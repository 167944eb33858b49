"""What is tried: the settings of candidates, drawn at random around those that have served others well.

Candidate 0 has the usual settings with identity forcing, candidate 1 with weak forcing at every step (and the
second family, if there are several), one of which `reconstruct` would take; candidate 2 is large, since flows
that shear ask for slopes that few gates cannot give. All others are drawn. Each setting has a stream of its
own, so that fixing one leaves the draws of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palrnn.engine.seeds import generator, kernel_seed
from palrnn.forcing import TrainConfig
from palrnn.model import Forcing
from palrnn.model.surrogate import family

#: Settings of training that the search itself decides.
OWN = frozenset({"updates", "seed", "family", "keep", "polish", "evaluate_every", "checkpoint_every"})
_FORCINGS = frozenset({"forcing", "tau", "alpha", "final_alpha", "alpha_schedule"})
#: Candidates that are not drawn: how each differs from the usual settings.
_FIXED: tuple[dict[str, Any], ...] = (
    {},
    {"forcing": Forcing.generalised(0.1).to_dict()},
    {"latent_dim": 96, "gated": 80, "hidden": 200},
)
# the first of these are the usual settings; of given sizes no large one is tried
_USUAL, _SIZES = 2, frozenset({"latent_dim", "gated", "hidden"})
# 96 units fill whole registers: 100 take half as long again
_LATENT, _GATED, _HIDDEN = (50, 60, 80, 96), (20, 40, 60, 80), (50, 100, 200)
# input noise in parts of the usual one: more makes slopes of clean data too small, and places worse
_INPUT_NOISE, _CLIP = (0.0, 0.5, 1.0, 2.0), (1.0, 5.0, 20.0)
_RATES, _ALPHAS, _TAUS = (1.5e-3, 6e-3), (0.05, 0.2), (0.5, 1.0, 2.0)
#: Of the candidates, the part with generalised forcing at every step.
_GENERALISED = 0.6
#: For one column: how many lags, and how far apart in terms of the usual delay.
LAGS, DELAYS = (2, 3, 4, 5), (1.0, 0.5, 1.5)


@dataclass(frozen=True)
class Candidate:
    """Settings of training, but for the number of updates, and of the delay embedding."""

    number: int
    training: dict[str, Any]
    lags: int = 1
    delay: int = 1

    def config(self, updates: int, rung: int = 0, **more: Any) -> TrainConfig:
        """Return the settings of training in a rung, which draws batches of its own."""
        seed = self.training["seed"]
        own = {"updates": updates, "seed": kernel_seed(seed, "rung", rung) if rung else seed}
        return TrainConfig(**(self.training | own | more))


@dataclass(frozen=True)
class Space:
    """What candidates are drawn from.

    ``choices`` are the values that somebody gave for settings of training, by name, ``lags`` and ``delays``
    those of the embedding, the usual one first; ``columns`` is the number of series, ``most_past`` how
    many rows may be lost to the past, ``tau``, ``input_noise`` and ``optimizer`` what they suggest.
    """

    columns: int
    most_past: int
    tau: int
    input_noise: float = TrainConfig().input_noise
    optimizer: str = TrainConfig().optimizer
    families: Sequence[str] = ("alrnn",)
    lags: Sequence[int] = (1,)
    delays: Sequence[int] = (1,)
    choices: Mapping[str, Sequence[Any]] | None = None
    seed: int = 0

    def candidate(self, number: int) -> Candidate:
        """Return candidate ``number``: always the same one."""
        lags, delay = self._embedding(number)
        given = {name: self._pick(number, name, values) for name, values in (self.choices or {}).items()}
        fixed = number < (_USUAL if _SIZES & given.keys() else len(_FIXED))
        kind = (
            self.families[number % len(self.families)]
            if number < len(_FIXED)
            else self._pick(number, "family", self.families)
        )
        drawn = self._fixed(number) if fixed else self._drawn(number)
        drawn["optimizer"] = self.optimizer
        if _FORCINGS & given.keys():
            del drawn["forcing"]
        if hasattr(family(kind), "gates_per_hidden"):
            drawn = {name: v for name, v in drawn.items() if name not in ("latent_dim", "gated")}
            if {"hidden", "gated"} & given.keys():
                del drawn["hidden"]
        else:
            del drawn["hidden"]
            drawn |= self._sizes(drawn, given, self.columns * lags)
        seed = kernel_seed(self.seed, "candidates", number)
        return Candidate(number, drawn | given | {"family": kind, "seed": seed}, lags, delay)

    def _fixed(self, number: int) -> dict[str, Any]:
        usual = TrainConfig()
        return {
            "latent_dim": usual.latent_dim,
            "gated": usual.gated,
            "hidden": 50,
            "forcing": Forcing.identity(self.tau).to_dict(),
            "learning_rate": usual.learning_rate,
            "input_noise": self.input_noise,
            "gradient_clip": usual.gradient_clip,
        } | _FIXED[number]

    def _drawn(self, number: int) -> dict[str, Any]:
        weak = generator(self.seed, "candidates", number, "policy").random() < _GENERALISED
        tau = max(1, round(self.tau * self._pick(number, "tau", _TAUS)))
        alpha = self._between(number, "alpha", _ALPHAS)
        return {
            "latent_dim": self._pick(number, "latent_dim", _LATENT),
            "gated": self._pick(number, "gated", _GATED),
            "hidden": self._pick(number, "hidden", _HIDDEN),
            "forcing": (Forcing.generalised(alpha) if weak else Forcing.identity(tau)).to_dict(),
            "learning_rate": self._between(number, "learning_rate", _RATES),
            "input_noise": round(self.input_noise * self._pick(number, "input_noise", _INPUT_NOISE), 4),
            "gradient_clip": self._pick(number, "gradient_clip", _CLIP),
        }

    def _sizes(self, drawn: Mapping[str, Any], given: Mapping[str, Any], seen: int) -> dict[str, Any]:
        """Return units and gates that fit each other and the columns, as far as nobody has given them."""
        units, gates = (given.get(name, drawn[name]) for name in ("latent_dim", "gated"))
        if not (isinstance(units, int) and isinstance(gates, int)):
            return {}  # refused by TrainConfig, by name
        if "latent_dim" not in given:
            return {"latent_dim": max(units, seen + gates)}
        return {} if "gated" in given else {"gated": min(gates, max(1, units - seen), units)}

    def _embedding(self, number: int) -> tuple[int, int]:
        fixed = number < len(_FIXED)
        lags = self.lags[0] if fixed else self._pick(number, "lags", self.lags)
        delay = self.delays[0] if fixed else self._pick(number, "delay", self.delays)
        if lags == 1:
            return 1, 1
        # the past of the first rows is lost
        return lags, max(1, min(delay, self.most_past // (lags - 1)))

    def _pick(self, number: int, name: str, values: Sequence[Any]) -> Any:
        if number == 0:
            return values[0]
        return values[int(generator(self.seed, "candidates", number, name).integers(len(values)))]

    def _between(self, number: int, name: str, bounds: tuple[float, float]) -> float:
        """Return a number between bounds, equally likely on a logarithmic scale, of two digits."""
        low, high = map(math.log, bounds)
        value = math.exp(generator(self.seed, "candidates", number, name).uniform(low, high))
        return float(f"{value:.2g}")
