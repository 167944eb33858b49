"""Polishing models that die, beside training them on without: who lives then, and how good are they?

    python benchmarks/polish.py --runs results/polish --write docs/training.md

The models are the paper's (`results/paper`): a random sample of those at tau 4 to 32 of which some long runs
end, and some that live, as a control. Each is polished (`palrnn.polish`), and beside it trained on
for as many updates at the same rate, with the same batches, without pushing anything; of that, too, the first
checkpoint that lives and scores as well is kept, judged as often. All are judged on what none has seen: long
runs from ten rows of the test part, D_stsp of 9,000 steps from each against the noise-free system, and the
loss under forcing on the test part. One JSON file per model is kept in the folder of runs, so the command
continues where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from document import publish

from palrnn.data.systems import lorenz63_system
from palrnn.engine.files import write_text
from palrnn.engine.plain import plain
from palrnn.forcing import TrainConfig, itf_loss
from palrnn.forcing.polishing import Polished, polish
from palrnn.invariants import dstsp_floor
from palrnn.invariants.over_starts import scores_over_starts
from palrnn.invariants.viability import spread_starts, viability
from palrnn.model import Checkpoint, Surrogate
from palrnn.paper.series import DataSettings, reference_series, training_series
from palrnn.paper.zoo import load_from_zoo

BEGIN, END = "<!-- table of benchmarks/polish.py -->", "<!-- end of polish -->"
PAPER = Path(__file__).parent.parent / "results" / "paper"
TAUS, STARTS, LONG, LENGTH, DISCARD, SEED = (4, 8, 16, 32), 10, 100_000, 9000, 1000, 0
#: What is done: the margin of the penalty, or none.
ARMS = {"polished": {}, "trained on": {"margin": None}}


def sampled(dying: int, living: int) -> list[tuple[str, bool]]:
    """Return the names of models to take, and whether each dies."""
    with (PAPER / "survival.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["tau"]) in TAUS]
    rng, found = np.random.default_rng(SEED), []
    for count, dies in ((dying, True), (living, False)):
        names = [
            f"p{row['process_std']}-o{row['observation_std']}-t{row['tau']}-s{row['seed']}"
            for row in rows
            if (int(row["moves_on"]) < int(row["starts"])) == dies
        ]
        found += [(names[i], dies) for i in rng.permutation(len(names))[:count]]
    return found


def judged(model: Surrogate, checkpoint: Checkpoint, test: np.ndarray, tau: int) -> dict[str, Any]:
    """Return what becomes of a model on what it has not seen."""
    starts = spread_starts(test, STARTS)
    life = viability(model, starts, LONG, data=test)
    scores = scores_over_starts(
        model,
        starts,
        reference_series(LENGTH, DISCARD, checkpoint.dt or 0.01),
        standardizer=checkpoint.standardizer,
        discard=DISCARD,
    )
    whole = len(test) // 200
    batch = test[: whole * 200].reshape(whole, 200, -1)
    return {
        "alive": life.alive,
        "outcomes": life.counts,
        "dstsp": scores.dstsp.tolist(),
        "loss": itf_loss(model, batch, tau),
    }


def measured(name: str) -> dict[str, Any]:
    """Return a model before and after each arm."""
    checkpoint = load_from_zoo(PAPER, name)
    told = checkpoint.training
    config = TrainConfig.paper(**told["training"])
    series = training_series(DataSettings(**told["data"]), told["process_std"], told["observation_std"])
    found: dict[str, Any] = {"before": judged(checkpoint.drift, checkpoint, series.test, config.tau)}
    for arm, how in ARMS.items():
        begun = time.process_time()
        done = polish(checkpoint.drift, series.train, config, **how)
        seconds = time.process_time() - begun
        after = judged(done.model, checkpoint, series.test, config.tau) if done.changed else found["before"]
        found[arm] = after | _course(done) | {"seconds": seconds}
    return found


def _course(done: Polished) -> dict[str, Any]:
    rounds = [
        {"updates": each.updates, "places": list(each.places), **each.life.to_dict()} for each in done.rounds
    ]
    known = {"changed": done.changed, "updates": done.updates, "words": done.words}
    return known | {"known_before": done.before.to_dict(), "rounds": rounds}


def table(found: dict[str, tuple[bool, dict[str, Any]]], floor: float) -> str:
    """Return one line per kind of model and what was done with it."""
    lines = [
        "| models | what was done | changed | alive from 10 of 10 starts | starts alive "
        "| D_stsp, median (quartiles) | of those changed, before and after | loss under forcing | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, dies, taus in (("dying", True, TAUS[:-1]), ("dying", True, TAUS[-1:]), ("living", False, TAUS)):
        ends = tuple(f"-t{tau}-" for tau in taus)
        some = [each for name, (of, each) in found.items() if of == dies and any(e in name for e in ends)]
        told = f"{kind}, tau {taus[0]} to {taus[-1]}" if len(taus) > 1 else f"{kind}, tau {taus[0]}"
        if not some:
            continue
        for arm in ("before", *ARMS):
            results = [each[arm] for each in some]
            alive = [each["alive"] for each in results]
            scores = [_median(each) for each in results]
            low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75])
            changed = [each for each in some if each[arm].get("changed")]
            pair = ""
            if changed:
                pair = " to ".join(
                    f"{np.median([_median(e[of]) for e in changed]):.2f}" for of in ("before", arm)
                )
            seconds = "" if arm == "before" else f"{np.median([each['seconds'] for each in results]):.0f}"
            count = "" if arm == "before" else str(len(changed))
            loss = np.median([each["loss"] for each in results])
            lines.append(
                f"| {told} | {'as trained' if arm == 'before' else arm} | {count} "
                f"| {alive.count(STARTS)} of {len(some)} | {sum(alive)} of {STARTS * len(some)} "
                f"| {middle:.2f} ({low:.2f} to {high:.2f}) | {pair} | {loss:.4f} | {seconds} |"
            )
    seen = sum(each["polished"]["known_before"]["ended"] == 0 for dies, each in found.values() if dies)
    words = (
        f"Two stretches of the noise-free system have a D_stsp of {floor:.2f}. Of the dying models, {seen} "
        "live as seen from twenty rows of the part to train on, and are left as they are."
    )
    return "\n".join([*lines, "", words])


def _median(each: dict[str, Any]) -> float:
    return float(np.median([20.0 if value is None else min(value, 20.0) for value in each["dstsp"]]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("results/polish"), help="where results are kept")
    parser.add_argument("--dying", type=int, default=40, help="models of which runs end")
    parser.add_argument("--living", type=int, default=10, help="models that live")
    parser.add_argument("--table", action="store_true", help="only show what is there")
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    chosen = parser.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, dies in sampled(chosen.dying, chosen.living):
        file = chosen.runs / f"{name}.json"
        if not file.exists():
            if chosen.table:
                continue
            write_text(file, json.dumps(plain(measured(name)), indent=1))
        found[name] = dies, json.loads(file.read_text(encoding="utf-8"))
        alive = ", ".join(f"{arm} {found[name][1][arm]['alive']}" for arm in ("before", *ARMS))
        print(f"{name}: of {STARTS} starts alive: {alive}", flush=True)
    floor = dstsp_floor(lorenz63_system(), length=LENGTH).median
    publish(table(found, floor), chosen.write, BEGIN, END)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
