"""The settings of training.

The defaults were chosen for models that live and score well; docs/training.md compares them with others. The
paper's own are `TrainConfig.paper`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Positive, Seed, Whole
from palrnn.model.forcing_policy import Forcing, as_forcing, forcing_from_numbers
from palrnn.model.surrogate import family

#: Other ways to say ``forcing``: an interval, a strength, and where the strength goes during training.
_NUMBERS = ("tau", "alpha", "final_alpha", "alpha_schedule")
_DEFAULT = Forcing.identity(16)
_GATED, _GATES_PER_UNIT = 40, 2 / 3
_PAPER: dict[str, Any] = {
    "family": "alrnn",
    "latent_dim": 30,
    "gated": 10,
    "forcing": _DEFAULT,
    "updates": 100_000,
    "batch_size": 16,
    "sequence_length": 200,
    "learning_rate": 1e-3,
    "final_learning_rate": 1e-5,
    "init_std": 0.01,
    "gradient_clip": None,
    "input_noise": 0.0,
    "precision": "single",
    "optimizer": "radam",
    "keep": "last",
    "polish": 0,
}

AnyForcing = Annotated[
    Forcing, BeforeValidator(as_forcing), PlainSerializer(Forcing.to_dict, return_type=dict[str, Any])
]
#: None is no limit; TOML, which has no None, says "none".
Clip = Annotated[
    Positive | None,
    BeforeValidator(lambda value: None if value == "none" else value),
    PlainSerializer(lambda value: "none" if value is None else value, when_used="json"),
]


class TrainConfig(Config):
    """How to train a surrogate by teacher forcing.

    A sequence has ``sequence_length`` rows, hence ``sequence_length - 1`` predictions. The learning rate
    falls exponentially from ``learning_rate`` to ``final_learning_rate`` over the whole run, by a constant
    factor per update. ``forcing`` says when and how strongly data enter, see `Forcing`; a number means
    ``Forcing.identity``. It can also be told, or changed, by numbers: every ``tau`` steps with strength
    ``alpha``, which goes to ``final_alpha`` over the run along an ``alpha_schedule``. ``family`` names the
    kind of surrogate ("alrnn", "shallow", "clipped-shallow"), of ``latent_dim`` units and ``gated`` gates (of
    a shallow one, ``hidden`` units may be given instead): 60 and 40, or more units where the series
    has more columns than that leaves room for (`fitted`), or two gates to three units where only these are
    given. ``gradient_clip`` is the longest gradient that is not shortened, None for no limit, and
    ``input_noise`` the deviation of noise on the observations that enter the network (the targets stay
    clean). ``optimizer`` is SOAP, Adam in coordinates in which the gradients of weights are uncorrelated, or
    the paper's RAdam, which needs many more updates. With
    ``evaluate_every``, the free-running model is measured after so many updates, on ``evaluate_steps`` steps
    of which the first ``evaluate_discard`` are left out, and on long runs of ``evaluate_long_steps``, which
    tell whether it lives; ``keep`` decides between the last and the best, which prefers models that live
    (`History.best`).
    A model whose long runs end is polished at the end of training (`polish`), in at most ``polish`` rounds; 0
    leaves that out.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    family: str = "alrnn"
    latent_dim: Count = 60
    gated: Whole = 40
    hidden: Count | None = None
    forcing: AnyForcing = _DEFAULT
    updates: Count = 30_000
    batch_size: Count = 16
    sequence_length: Annotated[Count, Field(ge=2)] = 200
    learning_rate: Positive = 3e-3
    final_learning_rate: Positive = 1e-5
    seed: Seed = 0
    init_std: Level = 0.01
    gradient_clip: Clip = 5.0
    input_noise: Level = 0.05
    precision: Literal["single", "double"] = "single"
    optimizer: Literal["soap", "radam"] = "soap"
    evaluate_every: Count | None = None
    evaluate_steps: Annotated[Count, Field(ge=100)] = 10_000
    evaluate_discard: Whole = 1000
    evaluate_long_steps: Annotated[Count, Field(ge=1000)] = 100_000
    keep: Literal["last", "best"] = "last"
    polish: Whole = 0
    checkpoint_every: Count = 5000

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's settings, but for ``changes``."""
        return cls(**(_PAPER | changes))

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> Self:
        """Return settings from a file; one that names no optimiser is from when there was RAdam alone."""
        return cls(**({"optimizer": "radam"} | dict(values)))

    def fitted(self, observed_dim: int) -> Self:
        """Return these settings for a series of ``observed_dim`` columns.

        Where nobody has asked for a number of units, there are enough for every gate beside the columns; of a
        shallow family, whose gates are no units, as many as columns.
        """
        if hasattr(family(self.family), "gates_per_hidden") and "latent_dim" not in self.model_fields_set:
            return self.changed(latent_dim=observed_dim, gated=self.gated)
        needed = observed_dim + self.gated
        if "latent_dim" in self.model_fields_set or needed <= self.latent_dim:
            return self
        return self.changed(latent_dim=needed, gated=self.gated)

    @model_validator(mode="before")
    @classmethod
    def _told_otherwise(cls, values: Any) -> Any:
        """Understand hidden units, numbers for a forcing, and units without gates."""
        if not isinstance(values, dict):
            return values  # refused by the model itself
        return _gates_of_units(_forcing_of_numbers(_gates_of_hidden_units(values)))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        family(self.family)
        if self.family == "alrnn" and self.gated > self.latent_dim:
            raise ValueError(f"gated must be at most latent_dim = {self.latent_dim}, is {self.gated}")
        if self.keep == "best" and self.evaluate_every is None:
            raise ValueError("keep = 'best' needs evaluate_every")
        if self.evaluate_discard >= self.evaluate_steps:
            raise ValueError("evaluate_discard must be less than evaluate_steps")
        return self

    @property
    def tau(self) -> int:
        """The number of steps between forcings."""
        return self.forcing.interval

    def learning_rates(self, begin: int, end: int) -> Floats:
        """Return the rates of updates ``begin .. end - 1``, counted from 0."""
        ratio = self.final_learning_rate / self.learning_rate
        rates: Floats = self.learning_rate * ratio ** (np.arange(begin, end) / self.updates)
        return rates


def _gates_of_hidden_units(values: dict[str, Any]) -> dict[str, Any]:
    hidden = values.get("hidden")
    if not isinstance(hidden, int) or hidden < 1:
        return values
    each = getattr(family(values.get("family", "alrnn")), "gates_per_hidden", None)
    if each is None:
        raise ValueError(f"hidden is of the shallow families, not of {values.get('family', 'alrnn')!r}")
    return values | {"gated": each * hidden}


def _forcing_of_numbers(values: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: values[name] for name in _NUMBERS if name in values}
    if not numbers:
        return values
    rest = {name: value for name, value in values.items() if name not in numbers}
    return rest | {"forcing": _with_numbers(as_forcing(rest.get("forcing", _DEFAULT)), numbers)}


def _gates_of_units(values: dict[str, Any]) -> dict[str, Any]:
    units = values.get("latent_dim")
    if "gated" in values or not isinstance(units, int) or units < 1:
        return values
    return values | {"gated": min(_GATED, math.ceil(_GATES_PER_UNIT * units))}


def _with_numbers(forcing: Forcing, numbers: dict[str, Any]) -> Forcing:
    """Return ``forcing`` with another interval, strength or schedule."""
    told = forcing.to_dict()
    if numbers.keys() == {"tau"} and "interval" in told:
        return Forcing.from_dict(told | {"interval": numbers["tau"]})
    now = {
        "tau": forcing.interval,
        "alpha": told.get("start", forcing.strength),
        "final_alpha": told.get("end"),
        "alpha_schedule": told.get("schedule", "exponential"),
    }
    return forcing_from_numbers(**(now | numbers))
