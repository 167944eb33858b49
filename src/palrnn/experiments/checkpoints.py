"""The trained models of the studies, and how well each reconstructs the attractor.

The gap study needs one model for each process noise, observation noise, forcing interval and seed; the
evidence study one for each pair of noises at one interval. A model that both need is the same task, so it is
trained once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from palrnn.data.systems import lorenz63_system
from palrnn.engine.progress import quiet
from palrnn.experiments.presets import DataSettings, Preset, stated
from palrnn.experiments.series import reference_series, training_series
from palrnn.experiments.store import Store
from palrnn.experiments.task import Kind, Task
from palrnn.forcing import TrainConfig, train
from palrnn.invariants import dstsp_floor
from palrnn.invariants.quantities import quantities_from
from palrnn.model import checkpoint_bytes, checkpoint_from_bytes

FLOOR = Kind("floor", "palrnn.experiments.checkpoints:true_divergences")
CHECKPOINT = Kind("checkpoint", "palrnn.experiments.checkpoints:trained", ".safetensors")
INVARIANTS = Kind("invariants", "palrnn.experiments.checkpoints:measured_invariants")


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


def gap_regimes(preset: Preset) -> list[Regime]:
    """The models of the gap study."""
    gap = preset.gap
    return [
        Regime(process, observation, tau, seed)
        for process in gap.process_std
        for observation in gap.observation_std
        for tau in gap.tau
        for seed in range(gap.seeds)
    ]


def evidence_regimes(preset: Preset) -> list[Regime]:
    """The models of the evidence study."""
    evidence = preset.evidence
    return [
        Regime(process, observation, evidence.tau, evidence.seed)
        for process in evidence.process_std
        for observation in evidence.observation_std
    ]


def regimes(preset: Preset) -> list[Regime]:
    """All models, each once: those of the evidence study, then the rest of its tau, then others by seed."""
    first, tau = evidence_regimes(preset), preset.evidence.tau
    rest = sorted(gap_regimes(preset), key=lambda regime: (regime.tau != tau, regime.seed))
    return list(dict.fromkeys([*first, *rest]))


def checkpoint_task(preset: Preset, regime: Regime) -> Task:
    """The training of one model."""
    training = stated(preset.training) | {"tau": regime.tau, "seed": regime.seed}
    levels = {"process_std": regime.process_std, "observation_std": regime.observation_std}
    return Task(CHECKPOINT, {"data": stated(preset.data), "training": training} | levels, label=regime.name)


def invariants_task(preset: Preset, model: Task) -> Task:
    """The attractor and the largest Lyapunov exponent of one model, whatever task it comes from."""
    how = preset.invariants
    settings = {"steps": how.steps, "discard": how.discard, "bins": how.bins, "smoothing": how.smoothing}
    return Task(INVARIANTS, settings | {"dt": preset.data.dt}, {"model": model}, label=model.label)


def floor_task(preset: Preset) -> Task:
    """The D_stsp that a perfect model would have."""
    how = preset.invariants
    settings = {"pairs": how.floor_pairs, "steps": how.steps - how.discard, "dt": preset.data.dt}
    return Task(FLOOR, settings | {"bins": how.bins, "smoothing": how.smoothing}, label="true against true")


def checkpoint_tasks(preset: Preset) -> list[Task]:
    """The training of all models, in order of need."""
    return [checkpoint_task(preset, regime) for regime in regimes(preset)]


def trained(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train one model; the result is a checkpoint without the optimiser's state, with a first observation."""
    data, config = DataSettings(**settings["data"]), TrainConfig(**settings["training"])
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


def measured_invariants(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Measure the hard-gated free-running model against the deterministic system, in raw coordinates.

    A model that diverges is infinitely far away, and has no exponent.
    """
    checkpoint = checkpoint_from_bytes(inputs["model"])
    steps, discard, dt = settings["steps"] - settings["discard"], settings["discard"], settings["dt"]
    scale = checkpoint.standardizer
    assert scale is not None
    run = quantities_from(
        checkpoint.drift,
        checkpoint.arrays["x1"],
        reference_series(steps, discard, dt),
        standardizer=scale,
        steps=steps,
        discard=discard,
        dt=dt,
        bins=settings["bins"],
        smoothing=settings["smoothing"],
    )
    measured = run.numbers()
    del measured["spectrum_distance"]
    return measured | {"diverged_at": run.diverged_at}


def true_divergences(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compare pairs of independent stretches of the deterministic system, as long as a measured rollout."""
    names = ("pairs", "dt", "bins", "smoothing")
    how = {name: settings[name] for name in names}
    return {"dstsp": dstsp_floor(lorenz63_system(), length=settings["steps"], **how).values}


def floor_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per pair of true stretches."""
    task = floor_task(preset)
    values = store.result(task)["dstsp"] if store.has(task) else []
    return [{"pair": pair, "dstsp": value} for pair, value in enumerate(values)]


def checkpoint_rows(preset: Preset, store: Store) -> list[dict[str, Any]]:
    """One row per trained model: its regime, its loss and its invariants as far as they are there."""
    rows = []
    for regime in regimes(preset):
        task = checkpoint_task(preset, regime)
        if not store.has(task):
            continue
        invariants = invariants_task(preset, task)
        measured = store.result(invariants) if store.has(invariants) else {}
        loss = checkpoint_from_bytes(store.read(task)).training["recent_loss"]
        shown = ("dstsp", "outside", "lyapunov", "lyapunov_stderr", "diverged_at")
        rows.append(regime._asdict() | {"loss": loss} | {name: measured.get(name) for name in shown})
    return rows
