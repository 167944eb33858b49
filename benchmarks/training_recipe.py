"""Settings of training side by side: do the models live, and how good are they?

    python benchmarks/training_recipe.py --runs build/recipe --write docs/training.md
    python benchmarks/training_recipe.py --runs build/recipe --series ecg.npy --seeds 3
    python benchmarks/training_recipe.py --regularisers --runs results/regularisers --write docs/training.md
    python benchmarks/training_recipe.py --rates --runs results/regularisers --write docs/training.md

Each model is trained on 40,000 rows with the settings in `CANDIDATES` and judged against a clean simulation:
by `viability` from 10 starts over 100,000 steps, by D_stsp of 20,000 free-running steps from each of them,
beside its floor, and by the largest Lyapunov exponent. One JSON file per model is kept in the folder of runs,
so the command continues where it stopped, and another process may do other models beside it. The plan is done
seed by seed, so that stopping early leaves a table with fewer seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from document import publish
from regularisers import LatentPenalty, ManifoldAttractor, Mean, WeightDecay, named

from palrnn.data import Standardizer, add_observation_noise, suggest_tau
from palrnn.data.field import field_jacobian, vector_field
from palrnn.data.systems import System, make_system
from palrnn.engine.files import write_text
from palrnn.engine.plain import plain
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.invariants import dstsp, dstsp_floor, lyapunov_spectrum
from palrnn.invariants.viability import spread_starts, viability
from palrnn.model import Forcing
from palrnn.model.engine import advance

BEGIN, END = "<!-- table of benchmarks/training_recipe.py -->", "<!-- end of recipe -->"
RATES_BEGIN, RATES_END = "<!-- rates -->", "<!-- end of rates -->"
REGULARISERS_BEGIN, REGULARISERS_END = "<!-- regularisers -->", "<!-- end of regularisers -->"
ROWS, LENGTH, DISCARD, STARTS, LONG, PAIRS = 40_000, 20_000, 1000, 10, 100_000, 10
CHOSEN_ON = 10_000

_RADAM: dict[str, Any] = {"optimizer": "radam"}
_OLD: dict[str, Any] = _RADAM | {"latent_dim": 30, "gated": 10, "learning_rate": 1e-3, "updates": 100_000}
_NEW: dict[str, Any] = _RADAM | {
    "latent_dim": 50,
    "gated": 20,
    "learning_rate": 3e-3,
    "gradient_clip": 5.0,
    "updates": 30_000,
}
_LARGER: dict[str, Any] = {"latent_dim": 60, "gated": 40}
_BEST: dict[str, Any] = {"evaluate_every": 3000, "keep": "best", "evaluate_long_steps": LONG}
_SOAP: dict[str, Any] = _NEW | _LARGER | _BEST | {"optimizer": "soap"}
_SHALLOW: dict[str, Any] = _RADAM | {
    "family": "shallow",
    "hidden": 50,
    "alpha": 0.1,
    "tau": 1,
    "updates": 30_000,
}
_DEFAULT = "SOAP, M 60, P 40, input noise 0.05, the best of ten"
_LAST: dict[str, Any] = {"keep": "last", "learning_rate": 1e-3, "final_learning_rate": 1e-3}
_CHANGES: dict[str, dict[str, Any]] = {
    "weight decay 0.01": {"family": named(WeightDecay, 0.01)},
    "weight decay 0.1": {"family": named(WeightDecay, 0.1)},
    "manifold attractor 0.1": {"family": named(ManifoldAttractor, 0.1)},
    "manifold attractor 1": {"family": named(ManifoldAttractor, 1.0)},
    "latent penalty 1e-3": {"family": named(LatentPenalty, 1e-3)},
    "latent penalty 1e-2": {"family": named(LatentPenalty, 1e-2)},
    "adaptive forcing": {"forcing": Forcing.adaptive(), "tau": 1},
    "rate 1e-3 throughout, the last": _LAST,
    "rate 1e-3 throughout, the mean of the last third": _LAST | {"family": named(Mean, 10_000)},
}
CANDIDATES: dict[str, dict[str, Any]] = {
    "paper": _OLD,
    "paper, 30,000 updates": _OLD | {"updates": 30_000},
    "M 50, P 20, rate 3e-3, clip 5": _NEW,
    "the same, input noise 0.05": _NEW | {"input_noise": 0.05},
    "the same, alpha 0.1 at every step": _NEW | {"alpha": 0.1, "tau": 1},
    "input noise 0.05, the best of ten": _NEW | _BEST | {"input_noise": 0.05},
    "M 60, P 40, input noise 0.05, the best of ten": _NEW | _LARGER | _BEST | {"input_noise": 0.05},
    "M 60, P 40, input noise 0.02, the best of ten": _NEW | _LARGER | _BEST | {"input_noise": 0.02},
    "M 60, P 40, input noise 0.01, the best of ten": _NEW | _LARGER | _BEST | {"input_noise": 0.01},
    "shallow, input noise 0.05, the best of ten": _SHALLOW | _BEST | {"input_noise": 0.05},
    "shallow, input noise 0.02, the best of ten": _SHALLOW | _BEST | {"input_noise": 0.02},
    _DEFAULT: _SOAP | {"input_noise": 0.05},
    "SOAP, M 60, P 40, input noise 0.02, the best of ten": _SOAP | {"input_noise": 0.02},
    "SOAP, shallow, input noise 0.05, the best of ten": _SHALLOW
    | _BEST
    | {"optimizer": "soap", "input_noise": 0.05},
}
#: What the field regularises by, each a change of the default.
REGULARISERS: dict[str, dict[str, Any]] = {_DEFAULT: CANDIDATES[_DEFAULT]} | {
    f"the same, {words}": CANDIDATES[_DEFAULT] | change for words, change in _CHANGES.items()
}
#: What does not follow from the data: learning rates and lengths of sequences, each a change of the default.
RATES: dict[str, dict[str, Any]] = {_DEFAULT: CANDIDATES[_DEFAULT]} | {
    f"the same, {words}": CANDIDATES[_DEFAULT] | change
    for words, change in {
        "rate 1e-3": {"learning_rate": 1e-3},
        "rate 6e-3": {"learning_rate": 6e-3},
        "sequences of 100 rows": {"sequence_length": 100},
        "sequences of 400 rows": {"sequence_length": 400},
    }.items()
}


@vector_field
def thomas_field(z: np.ndarray, p: np.ndarray, out: np.ndarray) -> None:
    """The cyclically symmetric system of Thomas (1999): dx/dt = sin y - b x, and so on."""
    for i in range(3):
        out[i] = np.sin(z[(i + 1) % 3]) - p[0] * z[i]


@field_jacobian
def thomas_jacobian(z: np.ndarray, p: np.ndarray, out: np.ndarray) -> None:
    """The derivative of the field."""
    out[:] = 0.0
    for i in range(3):
        out[i, i] = -p[0]
        out[i, (i + 1) % 3] = np.cos(z[(i + 1) % 3])


@vector_field
def halvorsen_field(z: np.ndarray, p: np.ndarray, out: np.ndarray) -> None:
    """Halvorsen's system (Sprott, 2003): dx/dt = -a x - 4 y - 4 z - y^2, and so on."""
    for i in range(3):
        y, w = z[(i + 1) % 3], z[(i + 2) % 3]
        out[i] = -p[0] * z[i] - 4.0 * y - 4.0 * w - y * y


@field_jacobian
def halvorsen_jacobian(z: np.ndarray, p: np.ndarray, out: np.ndarray) -> None:
    """The derivative of the field."""
    for i in range(3):
        out[i, i] = -p[0]
        out[i, (i + 1) % 3] = -4.0 - 2.0 * z[(i + 1) % 3]
        out[i, (i + 2) % 3] = -4.0


_OTHERS = {
    "thomas": System(thomas_field, thomas_jacobian, (0.208186,), (1.0, 0.0, 0.5), "thomas", 0.2),
    "halvorsen": System(halvorsen_field, halvorsen_jacobian, (1.4,), (-5.0, 0.0, 0.0), "halvorsen", 0.02),
}


@dataclass(frozen=True)
class Task:
    """A series to learn: of a simulated system with observation noise, or of a file."""

    name: str
    noise: float = 0.0
    dim: int | None = None
    file: Path | None = None

    @property
    def title(self) -> str:
        return f"{self.name}, {self.noise:.0%} noise" if self.noise else self.name

    @cached_property
    def system(self) -> System | None:
        if self.file is not None:
            return None
        return _OTHERS[self.name] if self.name in _OTHERS else make_system(self.name, dim=self.dim)

    @cached_property
    def dt(self) -> float:
        return 1.0 if self.system is None else self.system.customary_dt

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows to train on, and the clean ones to judge by."""
        if self.system is None:
            series = np.asarray(np.load(self.file), dtype=np.float64)
            cut = int(0.8 * len(series))
            return series[:cut], series[cut:]
        clean = self.system.simulate(ROWS, dt=self.dt, discard=10_000, seed=0)
        truth = self.system.simulate(2 * LENGTH, dt=self.dt, discard=10_000, seed=1)
        return add_observation_noise(clean, self.noise, seed=2) if self.noise else clean, truth

    @cached_property
    def floor(self) -> float:
        _, truth = self.parts
        length = min(LENGTH, len(truth) // 2)
        source = truth if self.system is None else self.system
        return dstsp_floor(source, length=length, pairs=PAIRS, dt=self.dt).median

    @cached_property
    def exponent(self) -> float | None:
        if self.system is None:
            return None
        return lyapunov_spectrum(self.system, self.parts[1][0], steps=100_000, dt=self.dt, k=1).largest


def measured(task: Task, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train one model and return what became of it."""
    seen, truth = task.parts
    scale = Standardizer.fit(seen)
    x, reference = scale.transform(seen), scale.transform(truth)
    given = {"tau": suggest_tau(x), "sequence_length": 200} | settings
    begun = time.perf_counter()
    try:
        # as in `reconstruct`, the best is chosen on the part to train on
        result = train(x, TrainConfig(**given, seed=seed), heldout=x[-CHOSEN_ON:])
        model = result.model
    except TrainingDivergedError as error:
        return {"diverged": error.update, "seconds": time.perf_counter() - begun}
    seconds = time.perf_counter() - begun
    starts = spread_starts(reference, STARTS)
    life = viability(model, starts, LONG, data=x)
    length = min(LENGTH, len(reference) // 2)
    runs = advance(model, model.embed(starts), DISCARD + length)[DISCARD:, :, : x.shape[1]]
    scores = [
        dstsp(run, reference[:length]).value if np.isfinite(run).all() else np.inf
        for run in runs.swapaxes(0, 1)
    ]
    exponent = np.nan
    if life.counts.get("diverges", 0) == 0:
        exponent = lyapunov_spectrum(model, starts[0], steps=50_000, discard=DISCARD, dt=task.dt, k=1).largest
    return {
        "viability": life.to_dict(),
        "dstsp": sorted(scores),
        "exponent": exponent,
        "seconds": seconds,
        "tau": given["tau"],
        "evaluations": [asdict(each) for each in result.history.evaluations],
        "length": length,
    }


def file_of(folder: Path, task: Task, candidate: str, seed: int) -> Path:
    """Return where the result of one model is kept."""
    words = "".join(c if c.isalnum() else "-" for c in f"{task.title} {candidate}")
    return folder / f"{words}-{seed}.json"


def table(folder: Path, tasks: list[Task], candidates: Iterable[str], head: str) -> str:
    """Return the models in the folder of runs as a table: a line per series and candidate (the ``head``)."""
    lines = [
        f"| series | {head} | models | alive from 10 of 10 starts | starts alive | D_stsp, median (range) "
        "| floor | largest exponent (true) | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task in tasks:
        for candidate in candidates:
            files = [file_of(folder, task, candidate, seed) for seed in range(100)]
            found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
            whole = [each for each in found if "viability" in each]
            if not whole:
                continue
            alive = [each["viability"]["alive"] for each in whole]
            medians = [np.median([v if v is not None else np.inf for v in each["dstsp"]]) for each in whole]
            exponents = [each["exponent"] for each in whole if each["exponent"] is not None]
            truth = "" if task.exponent is None else f" ({task.exponent:.3g})"
            rate = f"{np.median(exponents):.3g}{truth}" if exponents else "none"
            lines.append(
                f"| {task.title} | {candidate} | {len(found)} | {alive.count(STARTS)} of {len(found)} "
                f"| {sum(alive)} of {STARTS * len(found)} | {np.median(medians):.2f} ({min(medians):.2f} to "
                f"{max(medians):.2f}) | {task.floor:.2f} | {rate} "
                f"| {np.median([each['seconds'] for each in whole]):.0f} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("build/recipe"), help="where results are kept")
    parser.add_argument("--tasks", nargs="*", help="names of simulated series; all by default")
    parser.add_argument("--series", type=Path, nargs="*", default=[], help="files (.npy) to learn as well")
    parser.add_argument("--candidates", type=int, nargs="*", help="numbers of candidates, from 0")
    parser.add_argument("--seeds", type=int, default=3, help="models per series and candidate")
    parser.add_argument("--regularisers", action="store_true", help="try those, for a table of their own")
    parser.add_argument("--rates", action="store_true", help="learning rates and lengths of sequences")
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    chosen = parser.parse_args()
    tasks = [
        Task("lorenz63"),
        Task("lorenz63", 0.05),
        Task("rossler"),
        Task("thomas"),
        Task("halvorsen"),
        Task("lorenz96", dim=10),
    ]
    tasks = [task for task in tasks if chosen.tasks is None or task.title in chosen.tasks]
    tasks += [Task(file.stem, file=file) for file in chosen.series]
    chosen.runs.mkdir(parents=True, exist_ok=True)
    plan, marks, head = CANDIDATES, (BEGIN, END), "settings"
    if chosen.regularisers:
        plan, marks, head = REGULARISERS, (REGULARISERS_BEGIN, REGULARISERS_END), "regularised by"
    elif chosen.rates:
        plan, marks = RATES, (RATES_BEGIN, RATES_END)
    names = list(plan)
    asked = names if chosen.candidates is None else [names[i] for i in chosen.candidates]
    for seed in range(chosen.seeds):
        for task in tasks:
            for candidate in asked:
                file = file_of(chosen.runs, task, candidate, seed)
                if file.exists():
                    continue
                found = measured(task, plan[candidate], seed)
                write_text(file, json.dumps(plain(found)))
                alive = found["viability"]["verdict"] if "viability" in found else "training diverged"
                score = np.median(found["dstsp"]) if "dstsp" in found else np.inf
                print(f"{task.title} | {candidate} | seed {seed}: {alive}; D_stsp {score:.2f}", flush=True)
    publish(table(chosen.runs, tasks, plan, head), chosen.write, *marks)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
