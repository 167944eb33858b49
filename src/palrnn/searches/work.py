"""What a worker does: train a candidate for one rung, from where the last one left it, and judge it.

The result is a checkpoint of the model whose notes hold the judgement. A rung starts from the parameters of
the last one with a fresh schedule of the learning rate (a warm restart, Loshchilov and Hutter, 2017), so that
every rung ends with a model that is worth judging. The last rung keeps the best of five measured on the way.
At the end the winner and its rival learn from all rows, those that judged candidates among them (`ending`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palrnn.data.packing import unpack, unpack_inputs
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainingDivergedError, train
from palrnn.model import Checkpoint, checkpoint_bytes, checkpoint_from_bytes
from palrnn.runs.folder import block_means
from palrnn.searches.judge import Judgement, failed, judge_model
from palrnn.searches.parts import Parts, parts
from palrnn.searches.plan import Rung
from palrnn.searches.space import Candidate
from palrnn.sweeps import Kind, Task

DATA = Kind("data", "palrnn.searches.work:missing_data", ".safetensors", archived=False)
CANDIDATE = Kind("candidate", "palrnn.searches.work:train_candidate", ".safetensors")
JUDGEMENT = Kind("judgement", "palrnn.searches.work:judge_by_all_rows")

#: To be raised when candidates are taught or judged otherwise: a search that goes on makes them again then.
RULES = 6
#: Steps of the long runs that judge the last rung, and the others.
LONG_STEPS, SHORT_STEPS = 100_000, 20_000
# a last rung of so many updates is measured so often
_LONG_TRAINING, _MEASURED = 10_000, 5


def data_task(fingerprint: str) -> Task:
    """The series that all candidates learn from; the coordinator puts it into the store."""
    return Task(DATA, {"fingerprint": fingerprint}, label="the series")


def candidate_task(candidate: Candidate, plan: list[Rung], rung: int, data: Task, dt: float | None) -> Task:
    """The training of a candidate in ``rung`` of the ``plan``, which needs those before."""
    last = rung == len(plan) - 1
    updates = plan[rung].updates
    settings = {
        "training": candidate.training,
        "number": candidate.number,
        "lags": candidate.lags,
        "delay": candidate.delay,
        "rung": rung,
        "updates": updates,
        "measured": _MEASURED if last and updates >= _LONG_TRAINING else 0,
        "long_steps": LONG_STEPS if last else SHORT_STEPS,
        "dt": dt,
        "rules": RULES,
    }
    needs = {"data": data}
    if rung:
        needs["before"] = candidate_task(candidate, plan, rung - 1, data, dt)
    label = f"candidate {candidate.number}, rung {rung + 1}"
    return Task(CANDIDATE, settings, needs, cost=float(updates), label=label)


def final_task(candidate: Candidate, plan: list[Rung], data: Task, dt: float | None) -> Task:
    """The end of the winner: as many updates as in the last rung, from where that ended, on all rows."""
    last = candidate_task(candidate, plan, len(plan) - 1, data, dt)
    settings = {**last.settings, "rung": len(plan), "whole": True}
    label = f"candidate {candidate.number}, on all rows"
    return Task(CANDIDATE, settings, {"data": data, "before": last}, cost=last.cost, label=label)


def rival_task(candidate: Candidate, plan: list[Rung], data: Task, dt: float | None) -> Task:
    """The training of the usual settings from the beginning, on all rows, as long as the winner's end."""
    last = candidate_task(candidate, plan, len(plan) - 1, data, dt)
    settings = {**last.settings, "rung": 0, "whole": True}
    label = f"candidate {candidate.number}, afresh on all rows"
    return Task(CANDIDATE, settings, {"data": data}, cost=last.cost, label=label)


def judgement_task(model: Task, data: Task) -> Task:
    """The judgement of a candidate's model by all rows to train on."""
    same = {name: model.settings[name] for name in ("lags", "delay", "rules")}
    settings = {**same, "long_steps": LONG_STEPS}
    return Task(JUDGEMENT, settings, {"data": data, "model": model}, label=f"{model.label}, judged by these")


def train_candidate(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train and judge a candidate; ``inputs`` are the series and the checkpoint of the rung before."""
    data = _parts(settings, inputs["data"])
    before = checkpoint_from_bytes(inputs["before"]) if "before" in inputs else None
    return trained(settings, data, before)


def judge_by_all_rows(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Judge a model by all rows to train on; ``inputs`` are the series and the model's checkpoint."""
    data = _parts(settings, inputs["data"]).of_all_rows()
    drift = checkpoint_from_bytes(inputs["model"]).drift
    return judge_model(drift, data, long_steps=settings["long_steps"]).to_dict()


def _parts(settings: dict[str, Any], series: bytes) -> Parts:
    return parts(unpack(series), settings["lags"], settings["delay"], unpack_inputs(series))


def missing_data(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Say that the file with the series is gone: nobody can make it again from its settings."""
    raise RuntimeError("the series of the search is missing: give it again")


def trained(settings: dict[str, Any], data: Parts, before: Checkpoint | None) -> bytes:
    """Return the checkpoint of the candidate after this rung, with its judgement."""
    candidate = Candidate(settings["number"], settings["training"], settings["lags"], settings["delay"])
    rung, updates, measured = settings["rung"], settings["updates"], settings["measured"]
    longest = candidate.training.get("sequence_length", 200)
    whole = settings.get("whole", False)
    trials, drives = (data.whole, data.whole_inputs) if whole else (data.fit, data.fit_inputs)
    more: dict[str, Any] = {"sequence_length": max(2, min(longest, *map(len, trials), longest))}
    if measured:
        more |= {"evaluate_every": updates // measured, "keep": "best"}
    config = candidate.config(updates, rung, **more)
    past = [] if before is None else [(int(u), float(loss)) for u, loss in before.arrays["losses"]]
    past_updates = 0 if before is None else int(before.training["updates"])
    judgement: Judgement
    if before is not None and before.training["diverged"]:
        # it is here because all others were as bad
        model, forcing, losses = before.drift, before.forcing, list[tuple[int, float]]()
        judgement = Judgement.from_dict(before.training["judgement"])
        diverged = True
    else:
        try:
            start = None if before is None else before.drift
            result = train(
                trials,
                config,
                inputs=drives,
                model=start,
                heldout=data.validation,
                heldout_inputs=data.validation_inputs,
                dt=settings["dt"],
                progress=quiet,
            )
            model, forcing, diverged = result.model, result.forcing, False
            losses = block_means(list(enumerate(result.history.loss.tolist(), start=past_updates + 1)))
            judgement = judge_model(model, data.scored_by_all_rows(), long_steps=settings["long_steps"])
        except TrainingDivergedError as error:
            model, forcing, losses, diverged = error.model, config.forcing.final, [], True
            judgement = failed(past_updates + error.update, settings["long_steps"])
    notes = {
        "config": config.model_dump(mode="json"),
        "judgement": judgement.to_dict(),
        "number": candidate.number,
        "rung": rung,
        "updates": past_updates + updates,
        "diverged": diverged,
    }
    return checkpoint_bytes(
        model,
        standardizer=data.standardizer,
        dt=settings["dt"],
        training=notes,
        arrays={"losses": np.array([*past, *losses], dtype=np.float64).reshape(-1, 2)},
        forcing=forcing,
    )
