"""The trained models of the studies, and how well each reconstructs the attractor.

A model that two studies need is the same task, so it is trained once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.invariants.quantities import Quantities, quantities_from
from palrnn.model import PALRNN, Checkpoint, Surrogate, checkpoint_bytes, checkpoint_from_bytes
from palrnn.paper.presets import Preset, plain_settings
from palrnn.paper.series import DataSettings, reference_series, training_series
from palrnn.sweeps import Kind, Task

# the zoo holds the results
CHECKPOINT = Kind("checkpoint", "palrnn.paper.models:train_model", ".safetensors", archived=False)
INVARIANTS = Kind("invariants", "palrnn.paper.models:measure_invariants")


class Regime(NamedTuple):
    """What distinguishes one trained model from the others."""

    process_std: float
    observation_std: float
    tau: int
    seed: int

    @property
    def name(self) -> str:
        """The name of the model in the zoo."""
        return f"p{self.process_std:g}-o{self.observation_std:g}-t{self.tau}-s{self.seed}"


def checkpoint_task(preset: Preset, regime: Regime) -> Task:
    """The training of one model."""
    training = plain_settings(preset.training) | {"tau": regime.tau, "seed": regime.seed}
    levels = {"process_std": regime.process_std, "observation_std": regime.observation_std}
    return Task(
        CHECKPOINT, {"data": plain_settings(preset.data), "training": training} | levels, label=regime.name
    )


def invariants_task(preset: Preset, model: Task) -> Task:
    """The attractor and the largest Lyapunov exponent of one model, whatever task it comes from."""
    how = preset.invariants
    settings = {"steps": how.steps, "discard": how.discard, "bins": how.bins, "smoothing": how.smoothing}
    return Task(INVARIANTS, settings | {"dt": preset.data.dt}, {"model": model}, label=model.label)


def train_model(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train one model; the result is a checkpoint without the optimiser's state, with a first observation."""
    # what a task does not state is as in the paper, whatever the defaults become
    data, config = DataSettings(**settings["data"]), TrainConfig.paper(**settings["training"])
    series = training_series(data, settings["process_std"], settings["observation_std"])
    result = train(series.train, config, progress=quiet)
    notes = settings | {"recent_loss": result.history.recent_loss()}
    return checkpoint_bytes(
        result.model,
        standardizer=series.standardizer,
        dt=data.dt,
        training=notes,
        arrays={"x1": series.test[0]},
    )


def measured_run(model: Surrogate | PALRNN, checkpoint: Checkpoint, settings: dict[str, Any]) -> Quantities:
    """Return figures of a free run from the start in a checkpoint, against the deterministic system."""
    steps, discard, dt = settings["steps"] - settings["discard"], settings["discard"], settings["dt"]
    assert checkpoint.standardizer is not None
    return quantities_from(
        model,
        checkpoint.arrays["x1"],
        reference_series(steps, discard, dt),
        standardizer=checkpoint.standardizer,
        steps=steps,
        discard=discard,
        dt=dt,
        bins=settings["bins"],
        smoothing=settings["smoothing"],
        seed=settings.get("seed", 0),
    )


def measure_invariants(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Measure the hard-gated free-running model against the deterministic system, in raw coordinates.

    A model that diverges is infinitely far away, and has no exponent.
    """
    checkpoint = checkpoint_from_bytes(inputs["model"])
    run = measured_run(checkpoint.drift, checkpoint, settings)
    measured = run.numbers()
    del measured["spectrum_distance"]
    return measured | {"diverged_at": run.diverged_at}
