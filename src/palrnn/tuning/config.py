"""The settings of particle-SAEM. Defaults are the paper's (Table saem_hparams); what goes beyond is off."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from palrnn.engine.config import Config, Count, Level, Positive, Whole
from palrnn.forcing.config import AnyForcing
from palrnn.inference.config import FilterConfig, SampleConfig, SchemeName
from palrnn.model import Forcing

Configuration = Literal["baseline", "calib", "full", "anchored"]


class SAEMConfig(Config):
    """How a PAL-RNN is fine-tuned by windowed evidence.

    ``configuration`` says what is updated: nothing (``baseline``), the process and observation deviations
    (``calib``), these and the drift (``full``), or the same with the teacher-forcing loss as a second term
    (``anchored``, with the weight ``beta`` and under ``forcing``; a number ``tau`` means identity forcing).

    ``smoother`` says how gate paths are drawn: ``ancestors`` of a filter pass (the paper's), by particle
    ``gibbs`` from a filter pass, or by a ``conditional`` filter alone, which goes on from the path of the
    last iteration and needs few particles. The last two take ``target="exact"`` and ``sweeps`` passes per
    path. ``noise`` is the kind of noise that is learned; ``diagonal_noise=True`` is another way to give that.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    configuration: Configuration = "full"
    length: Count = 32
    iterations: Whole = 8
    windows: Count = 80

    # the E-step
    particles: Count = 256
    paths: Count = 8
    states_per_path: Count = 1
    smoother: Literal["ancestors", "gibbs", "conditional"] = "ancestors"
    sweeps: Count = 1
    target: Literal["paper", "exact"] = "paper"
    resampling: SchemeName = "multinomial"
    ess_threshold: Annotated[float, Field(ge=0, le=1)] = 0.5

    # the M-step. The paper does not say what its ridge is measured against: see docs/tuning.md
    ridge: Level = 1e-2
    ridge_per: Literal["step", "window"] = "step"
    ridge_towards: Literal["zero", "current"] = "zero"
    blend: Annotated[float, Field(gt=0, le=1)] = 0.25
    floor: Positive = 1e-4

    # beyond the paper
    robbins_monro: bool = False
    step_exponent: Annotated[float, Field(gt=0.5, le=1)] = 0.7
    learn_gate_std: bool = False
    noise: Literal["isotropic", "diagonal", "full"] = "isotropic"
    drift_steps: Count = 50  # of a family without a closed form
    beta: Level = 100.0
    forcing: AnyForcing = Forcing.identity(16)
    anchor_length: Annotated[Count, Field(ge=2)] = 200
    anchor_steps: Count = 50

    # held-out evaluation: before and after, and every so many iterations between (0: not between)
    heldout_windows: Count = 120
    evaluate_every: Whole = 0
    rollout_steps: Annotated[Count, Field(ge=2)] = 10_000
    rollout_discard: Whole = 1000
    dt: Positive = 0.01
    reference_lyapunov: float | None = None

    def changed(self, **values: Any) -> Self:
        """Return a copy with some settings changed; ``tau`` takes the place of the forcing from before."""
        if "tau" in values and "forcing" not in values:
            values["forcing"] = values.pop("tau")
        return super().changed(**values)

    @model_validator(mode="before")
    @classmethod
    def _forcing_from_tau(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "tau" not in values:
            return values
        if "forcing" in values:
            raise ValueError("forcing says all; leave out tau")
        rest = {name: value for name, value in values.items() if name != "tau"}
        return rest | {"forcing": values["tau"]}

    @model_validator(mode="before")
    @classmethod
    def _noise_from_diagonal(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "diagonal_noise" not in values:
            return values
        rest = {name: value for name, value in values.items() if name != "diagonal_noise"}
        return rest | {"noise": "diagonal" if values["diagonal_noise"] else "isotropic"}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rollout_discard >= self.rollout_steps:
            raise ValueError("rollout_discard must be less than rollout_steps")
        if self.smoother != "ancestors" and self.target != "exact":
            raise ValueError(f"smoother = {self.smoother!r} needs target = 'exact'")
        return self

    @property
    def filter_config(self) -> FilterConfig:
        """The settings of the filter, but for its seed."""
        return FilterConfig(**self.model_dump(include={*FilterConfig.model_fields}))

    @property
    def sample_config(self) -> SampleConfig:
        """How paths and states are drawn, but for the seed."""
        return SampleConfig(
            paths=self.paths,
            states_per_path=self.states_per_path,
            method="ancestors" if self.smoother == "ancestors" else "gibbs",
            sweeps=self.sweeps,
        )

    @property
    def learns_drift(self) -> bool:
        """Whether A, W and h are updated."""
        return self.configuration in ("full", "anchored")

    @property
    def learns_noise(self) -> bool:
        """Whether the process and observation deviations are updated."""
        return self.configuration != "baseline"
