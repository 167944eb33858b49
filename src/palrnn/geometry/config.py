"""The settings of the geometry: how gate paths are drawn, and how the two curvatures are compared."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field

from palrnn.engine.config import Count, Positive, Whole
from palrnn.engine.seeds import kernel_seed
from palrnn.inference.config import FilterConfig, FilterSettings, SampleConfig, SampleSettings


class InformationConfig(SampleConfig, FilterConfig):
    """How `observed_information` averages over gate paths.

    ``target`` is that of the filter: the model itself, for which Louis' identity is exact, or the paper's.
    ``passes`` independent passes of the filter give ``paths`` gate paths each. ``states="exact"`` knows all
    about the state given a path in closed form: every path gives its exact score, which costs little, and
    ``state_paths`` of each pass their exact information (matrix, trace or products). ``states="sampled"`` is
    the paper's estimator: ``states_per_path`` sampled states stand for each path.

    ``method`` and ``sweeps`` are those of `smooth` (None: its own choice for the target). ``lags`` leaves
    pairs of times further apart than that out of traces, for long segments (None: keep all; matrices and
    products always have all).
    """

    target: Literal["paper", "exact"] = "exact"
    states: Literal["exact", "sampled"] = "exact"
    passes: Count = 4
    paths: Annotated[Count, Field(ge=2)] = 12
    state_paths: Count = 1
    lags: Count | None = None

    def filter_config(self, number: int = 0) -> FilterConfig:
        """Return the settings of one of the passes: the first has the seed itself, the others its streams."""
        seed = self.seed if number == 0 else kernel_seed(self.seed, "pass", number)
        return FilterConfig(**self.model_dump(include={*FilterConfig.model_fields})).changed(seed=seed)

    def sample_config(self, seed: int) -> SampleConfig:
        """Return how paths are drawn, from ``seed``."""
        return SampleConfig(**self.model_dump(include={*SampleConfig.model_fields})).changed(seed=seed)

    @classmethod
    def paper(cls) -> Self:
        """Return the paper's estimator (Table rbpf_hparams): 8 paths with a sampled state each, 64 particles.

        Its matrix has artefacts that no exact one has: a missing information of rank 7.
        """
        return cls(states="sampled", particles=64, passes=1, paths=8, states_per_path=1, target="paper")


class GeometryConfig(InformationConfig):
    """How `compare_geometries` compares: ``ridge`` and ``k`` are those of `mismatch`.

    Of more than ``most_dense`` parameters no p x p matrix is built, which takes minutes and gigabytes: there
    are traces then, no spectra, and with ``lanczos`` the overlap of the ``k`` leading directions.
    """

    ridge: Positive = 1e-6
    k: Count = 50
    most_dense: Whole = 1500
    lanczos: bool = False


class InformationSettings(FilterSettings, SampleSettings, total=False):
    """The settings of `InformationConfig` as keyword arguments."""

    states: str
    passes: int
    state_paths: int
    lags: int | None


class GeometrySettings(InformationSettings, total=False):
    """The settings of `GeometryConfig` as keyword arguments."""

    ridge: float
    k: int
    most_dense: int
    lanczos: bool
