"""Particle-SAEM on windows (Alg. saem): fine-tune a PAL-RNN by windowed evidence."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats, as_instance, as_int, as_series, as_trials
from palrnn.engine.kernel import pin_blas
from palrnn.engine.locks import folder_lock
from palrnn.engine.processors import available_processors
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import generator
from palrnn.forcing import itf_loss
from palrnn.model import PALRNN
from palrnn.model.inputs import checked_inputs, checked_trial_inputs
from palrnn.tuning.anchor import anchored_solution
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.estep import expectation
from palrnn.tuning.evaluation import heldout_evaluation
from palrnn.tuning.history import TuningHistory
from palrnn.tuning.mstep import blended, drift_solution, gate_solution, noise_solution
from palrnn.tuning.run import SavedTuning, State
from palrnn.tuning.sequences import stretches, window_pool
from palrnn.tuning.statistics import Statistics


@dataclass(frozen=True, eq=False)
class SAEMResult:
    """The tuned ``model``, what happened (``history``), and the wall-clock ``seconds`` of this call."""

    model: PALRNN
    history: TuningHistory
    config: SAEMConfig
    seed: int
    seconds: float

    def __repr__(self) -> str:
        return f"SAEMResult({self.config.configuration}: {self.history!r}, {self.model!r})"


class Inputs(NamedTuple):
    """What drives the model in each part of the data, in its form; None where there is nothing."""

    pool: Floats | None
    anchor: Floats | None
    heldout: Floats | None
    reference: Floats | None


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that stays the same during tuning: windows, stretches for the anchor, held-out data."""

    config: SAEMConfig
    seed: int
    pool: Floats
    anchor: Floats | None
    heldout: Floats | None
    reference: Floats | None
    inputs: Inputs

    def unvisited(self, model: PALRNN) -> Floats:
        """Return paths ``(K, L, P)`` for all windows of which none has been drawn: NaN."""
        return np.full((len(self.pool), self.config.length, model.drift.gated), np.nan)


def saem(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    config: SAEMConfig | None = None,
    *,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    seed: int = 0,
    heldout: ArrayLike | Sequence[ArrayLike] | None = None,
    reference: ArrayLike | None = None,
    heldout_inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    reference_inputs: ArrayLike | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    run: str | os.PathLike[str] | None = None,
    standardizer: Standardizer | None = None,
    input_standardizer: Standardizer | None = None,
) -> SAEMResult:
    """Fine-tune ``model`` by the evidence of windows of ``sequences``: ``(T, N)``, ``(J, T, N)`` or a list.

    All series are in the model's standardised coordinates; NaN means not observed. With ``heldout`` (in the
    same form), the evidence of fixed held-out windows is evaluated before, after and every ``evaluate_every``
    iterations; with ``reference (T, N)``, the invariants of the rollouts too. A driven model needs the
    ``inputs`` of the sequences, and those of what is held out, each in the form of its data; the M-step
    learns C with the rest of the drift.

    An ``initial`` of None means that the start of a window follows the process noise, and is then learned
    with it; a given one stays as it is. Results depend on ``seed`` but not on the number of ``threads``
    (default: one per core). With a folder ``run``, each iteration is saved in ``run/checkpoint.safetensors``
    (with the ``standardizer`` and the ``input_standardizer``, if given), and a call that was interrupted
    continues exactly where it stopped.
    """
    started = time.perf_counter()
    given: dict[str, Any] = {"inputs": inputs, "seed": seed, "heldout": heldout, "reference": reference}
    given |= {"heldout_inputs": heldout_inputs, "reference_inputs": reference_inputs, "run": run}
    given |= {"standardizer": standardizer, "input_standardizer": input_standardizer}
    problem, folder = _checked(model, sequences, config, **given)
    config = problem.config
    pin_blas()
    total = config.iterations if config.learns_noise else 0
    workers = as_int(threads, "threads", least=1) if threads is not None else available_processors()
    with (
        nullcontext() if folder is None else folder_lock(folder.path, "tuning"),
        listening(progress, f"tuning ({config.configuration})") as report,
        ThreadPoolExecutor(workers) as executor,
    ):
        state = folder.load() if folder is not None and folder.begun else None
        if state is None:
            state = State(model, 0, [_row(problem, model, 0, total, workers)], None, None)
            if folder is not None:
                folder.save(state)
        while state.iteration < total:
            state = _iterate(problem, state, total, executor, workers)
            if folder is not None:
                folder.save(state)
            report(state.iteration, total, {"evidence": state.last("evidence")})
    return SAEMResult(state.model, TuningHistory.of(state.rows), config, seed, time.perf_counter() - started)


def check_saem(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    config: SAEMConfig | None = None,
    **arguments: Any,
) -> None:
    """Refuse what `saem` with the same arguments would refuse; write nothing."""
    _, folder = _checked(model, sequences, config, **arguments)
    if folder is not None and folder.begun:
        folder.load()


def _checked(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    config: SAEMConfig | None,
    *,
    seed: int = 0,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    heldout: ArrayLike | Sequence[ArrayLike] | None = None,
    reference: ArrayLike | None = None,
    heldout_inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    reference_inputs: ArrayLike | None = None,
    run: str | os.PathLike[str] | None = None,
    standardizer: Standardizer | None = None,
    input_standardizer: Standardizer | None = None,
) -> tuple[Problem, SavedTuning | None]:
    """Return what stays the same during tuning, and the folder of the run, if it has one."""
    config = SAEMConfig() if config is None else config
    if not isinstance(model, PALRNN):
        raise ValueError(
            f"model must be a PALRNN, got {type(model).__name__}; give it noise: PALRNN(drift, 0.1, 0.1, 0.7)"
        )
    if not isinstance(config, SAEMConfig):
        raise ValueError(f"config must be a SAEMConfig, got {type(config).__name__}")
    scales = {"standardizer": standardizer, "input_standardizer": input_standardizer}
    for name, scale in scales.items():
        if scale is not None:
            as_instance(scale, name, Standardizer)
    for name, data, given in (
        ("heldout", heldout, heldout_inputs),
        ("reference", reference, reference_inputs),
    ):
        if data is None and given is not None:
            raise ValueError(f"{name}_inputs must come with {name}, which is None")
    dim = model.drift.observed_dim
    how: dict[str, Any] = {"min_steps": config.length + 1, "dim": dim, "allow_nan": True}
    series, length = as_trials(sequences, "sequences", **how), config.length
    s = _trial_inputs(model, inputs, series, "inputs")
    held = held_s = None
    if heldout is not None:
        trials = as_trials(heldout, "heldout", **how)
        parts = _trial_inputs(model, heldout_inputs, trials, "heldout_inputs")
        held = window_pool(trials, length, "heldout")
        held_s = None if parts is None else window_pool(trials, length, "heldout", of=parts)
    truth = truth_s = None
    if reference is not None:
        truth = as_series(reference, "reference", dim=dim, allow_nan=True)
        truth_s = checked_inputs(model, reference_inputs, len(truth), "reference_inputs")
    anchor = anchor_s = None
    if config.configuration == "anchored":
        anchor = stretches(series, config.anchor_length)
        anchor_s = None if s is None else stretches(series, config.anchor_length, of=s)
    pool = window_pool(series, length)
    pool_s = None if s is None else window_pool(series, length, of=s)
    driven = Inputs(pool_s, anchor_s, held_s, truth_s)
    problem = Problem(config, as_int(seed, "seed", most=None), pool, anchor, held, truth, driven)
    return problem, None if run is None else SavedTuning.of(run, model, problem, **scales)


def _trial_inputs(model: PALRNN, inputs: Any, trials: list[Floats], name: str) -> list[Floats] | None:
    """Return the inputs of all trials, None where the model takes none."""
    found = checked_trial_inputs(model, inputs, [len(trial) for trial in trials], name)
    given = [part for part in found if part is not None]
    return given if given else None


def _iterate(problem: Problem, state: State, total: int, executor: Executor, threads: int) -> State:
    """One iteration of Alg. saem: windows, E-step, M-step, damped update, and a row for the history."""
    config, iteration, model = problem.config, state.iteration, state.model
    drawn = generator(problem.seed, 0, iteration).integers(0, len(problem.pool), size=config.windows)
    paths = problem.unvisited(model) if state.paths is None else state.paths
    stream = (problem.seed, 1, iteration)
    given = None if problem.inputs.pool is None else problem.inputs.pool[drawn]
    found = expectation(model, problem.pool[drawn], config, stream, executor, paths[drawn], given)
    statistics, step = found.statistics, config.blend
    if config.robbins_monro:
        # the step of the stochastic approximation takes the place of the blend
        gain, step = (iteration + 1) ** -config.step_exponent, 1.0
        statistics = statistics if state.average is None else state.average.averaged(statistics, gain)
    tuned = blended(
        model, provisional(model, statistics, config, problem.anchor, problem.inputs.anchor), step
    )
    seen = state.rows[-1] | {"evidence": found.evidence, "died": float(found.died)}
    new = _row(problem, tuned, iteration + 1, total, threads)
    average = statistics if config.robbins_monro else None
    rows, kept = [*state.rows[:-1], seen, new], None
    if config.smoother == "conditional":
        kept = paths.copy()
        kept[drawn] = found.paths
    return State(tuned, iteration + 1, rows, average, kept)


def provisional(
    model: PALRNN,
    statistics: Statistics,
    config: SAEMConfig,
    anchor: Floats | None = None,
    anchor_inputs: Floats | None = None,
) -> PALRNN:
    """Return the M-step's solution, before any damping, for the blocks that the configuration updates."""
    if not config.learns_noise:
        return model
    drift = model.drift
    ridge = config.ridge if config.ridge_per == "step" else config.ridge / config.length
    towards = drift.theta if config.ridge_towards == "current" else None
    if config.configuration == "anchored" and anchor is not None:
        drift = anchored_solution(
            statistics,
            model,
            anchor,
            forcing=config.forcing,
            beta=config.beta,
            ridge=ridge,
            towards=towards,
            steps=config.anchor_steps,
            inputs=anchor_inputs,
        )
    elif config.learns_drift:
        drift = drift_solution(statistics, model, ridge=ridge, towards=towards, steps=config.drift_steps)
    process, observation = noise_solution(
        statistics, drift, kind=config.noise, tied_start=model.initial is None, floor=config.floor
    )
    learned = model.with_drift(drift).with_noise(process=process, observation=observation)
    if config.learn_gate_std and drift.gated:
        learned = replace(learned, gate_std=gate_solution(statistics))
    return learned


def _row(problem: Problem, model: PALRNN, iteration: int, total: int, threads: int) -> dict[str, float]:
    """Return the history's row for ``model``, with the held-out evaluation where it is due."""
    config, every = problem.config, problem.config.evaluate_every
    row = {
        "iteration": float(iteration),
        "process_std": float(np.sqrt(np.mean(model.process_variances))),
        "observation_std": float(np.sqrt(np.mean(model.observation_variances))),
        "gate_std": model.gate_std,
    }
    if problem.anchor is not None:
        row["itf_loss"] = itf_loss(model.drift, problem.anchor, config.forcing, inputs=problem.inputs.anchor)
    if iteration in (0, total) or (every and iteration % every == 0):
        held = heldout_evaluation(
            model,
            config,
            heldout=problem.heldout,
            reference=problem.reference,
            heldout_inputs=problem.inputs.heldout,
            reference_inputs=problem.inputs.reference,
            seed=problem.seed,
            threads=threads,
        )
        row |= held.row()
    return row
