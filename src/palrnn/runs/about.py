"""Where the data of a reconstruction came from, and what there is to say about it in words."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from palrnn.data import systems
from palrnn.data.systems import System
from palrnn.engine.config import Config
from palrnn.forcing import TrainConfig
from palrnn.model import ALRNN
from palrnn.runs.settings import Noise

_VERSIONED = ("numpy", "scipy", "numba", "plotly")
#: Systems whose true invariants can be computed.
SYSTEMS = {"lorenz63": systems.lorenz63_system, "rossler": systems.rossler_system}
UNNAMED = "reconstruction"


class About(Config):
    """The source of a series: its name and columns, how much of it, and the true system if it is known."""

    name: str = UNNAMED
    series: str = "in memory"
    columns: tuple[str, ...] = ()
    training_steps: int | None = None
    trials: int = 1
    lags: int = 1
    delay: int = 1
    system: str | None = None
    process_std: float = 0.0
    lyapunov: float | None = None

    @classmethod
    def of_run(cls, run: Path, data: Any) -> About:
        """Return what the table [data] of a run's config.toml says; the folder gives the name."""
        table = data if isinstance(data, dict) else {}
        series = str(table.get("series", "unknown"))
        known = {name: table[name] for name in cls.model_fields if name in table}
        if series in SYSTEMS:
            known.setdefault("system", series)
        if known.get("name", UNNAMED) == UNNAMED:
            known["name"] = run.resolve().name
        return cls(**(known | {"series": series}))

    def observed_columns(self, count: int) -> tuple[str, ...]:
        """Return names for the ``count`` coordinates the model observes, past values among them."""
        present = self.columns
        if len(present) * self.lags != count:
            present = tuple(f"x{i + 1}" for i in range(count // self.lags))
        past = range(1, self.lags)
        return present + tuple(f"{name}, {k * self.delay} steps ago" for k in past for name in present)

    @property
    def true_system(self) -> System | None:
        """The simulated system, with its usual parameters, that the series came from; None if not known."""
        known = self.system in SYSTEMS and self.lags == 1
        return SYSTEMS[self.system]() if self.system is not None and known else None


def facts(
    about: About,
    model: ALRNN,
    config: TrainConfig | None,
    noise: Noise,
    columns: tuple[str, ...],
    dt: float | None,
    held_out: int,
) -> dict[str, dict[str, Any]]:
    """Return what was done, in groups of named values: data, model, settings, versions."""
    data: dict[str, Any] = {"series": about.series, "coordinates": list(columns)}
    data["time step"] = dt if dt is not None else "not given: rates are per step"
    data |= {"training steps": about.training_steps, "held-out steps": held_out}
    data["trials"] = about.trials if about.trials > 1 else None
    data["delay embedding"] = f"{about.lags} lags of {about.delay} steps" if about.lags > 1 else None
    sizes = {
        "latent units M": model.latent_dim,
        "gated units P": model.gated,
        "observed coordinates N": model.observed_dim,
        "drift parameters": model.latent_dim * (model.latent_dim + 2),
        "process deviation": noise.process_std,
        "observation deviation": noise.observation_std,
        "gate deviation": noise.gate_std,
    }
    training = {} if config is None else config.model_dump(mode="json", exclude_none=True)
    versions = {name: importlib.metadata.version(name) for name in ("palrnn", *_VERSIONED)}
    return {
        "Data": {key: value for key, value in data.items() if value is not None},
        "Training settings": {name.replace("_", " "): value for name, value in training.items()},
        "Model": sizes,
        "Versions": versions | {"Python": platform.python_version()},
    }
