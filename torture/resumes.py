"""Runs continued from damaged and hostile files: training and tuning, in child processes.

    python -m torture.resumes FOLDER --count 20000 --seconds 300 --seed 0      prints what it saw as JSON

Half of the files are mutated byte by byte; the other half are whole checkpoints in which arrays have another
length, type or content, notes say something else, or the model is of another size. Going on must work
or be refused in one line that names the file. A child that dies is a fault, and is replaced.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import palrnn  # noqa: E402
from palrnn.engine.progress import quiet  # noqa: E402
from palrnn.model import checkpoint_bytes  # noqa: E402
from torture.mutations import limit_memory, mutated  # noqa: E402

_FILE = "checkpoint.safetensors"
_PER_CHILD = 1000
_MOST_SECONDS = 20
_KINDS = ("f8", "f4", "f2", "i8", "i4", "u1", "b1")
_FILLS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-310, 3.5)
_NOTES: tuple[Any, ...] = (None, True, -1, 0, 1, 10**18, 10**40, 1.5, "x", "", [], [1, 2], {}, {"a": 1})


class Stop(Exception):
    """Raised to leave a run in its middle."""


class Subject(NamedTuple):
    """A run that can be continued from a folder."""

    go: Callable[[Path, Any], Any]
    stop_at: int


def _stopping(at: int) -> Callable[..., None]:
    def progress(done: int, total: int, figures: Any) -> None:
        if done >= at:
            raise Stop

    return progress


def subjects() -> dict[str, Subject]:
    """Return a small training and a small tuning."""
    x = palrnn.lorenz63(80, seed=1)
    x = palrnn.Standardizer.fit(x).transform(x)[:, :2]
    training = palrnn.TrainConfig(
        latent_dim=4,
        gated=2,
        tau=3,
        updates=6,
        batch_size=2,
        sequence_length=8,
        checkpoint_every=2,
        evaluate_every=3,
        evaluate_steps=100,
        evaluate_discard=10,
        keep="best",
    )
    tuning = palrnn.SAEMConfig(
        length=5, iterations=2, windows=2, particles=4, paths=2, heldout_windows=2, robbins_monro=True
    )
    model = palrnn.PALRNN(palrnn.initial_alrnn(4, 2, 2, seed=1), 0.3, 0.2, 0.5)
    return {
        "train": Subject(lambda run, heard: palrnn.train(x, training, run=run, heldout=x, progress=heard), 4),
        "tune": Subject(
            lambda run, heard: palrnn.saem(model, x, tuning, run=run, threads=1, progress=heard), 1
        ),
    }


def interrupted(subject: Subject, folder: Path) -> bytes:
    """Return the checkpoint of a run that was left in its middle."""
    try:
        subject.go(folder, _stopping(subject.stop_at))
    except Stop:
        return (folder / _FILE).read_bytes()
    raise AssertionError("the run was not interrupted")


def crafted(data: bytes, folder: Path, rng: np.random.Generator) -> bytes:
    """Return a whole checkpoint in which one to three things are not as they were."""
    file = folder / "good.safetensors"
    if not file.exists():
        file.write_bytes(data)
    there = palrnn.load_checkpoint(file)
    model, arrays, notes = there.model, dict(there.arrays), copy.deepcopy(there.training)
    for _ in range(int(rng.integers(1, 4))):
        what = int(rng.integers(8))
        if what == 0:
            model = _other_model(model, rng)
        elif what <= 2:
            _change_note(notes, rng)
        else:
            name = str(rng.choice(sorted(arrays)))
            changed = _changed(arrays.pop(name), rng)
            if changed is not None:
                arrays[name] = changed
    return checkpoint_bytes(model, training=notes, arrays=arrays)


def _changed(array: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    what = int(rng.integers(6))
    if what == 0:
        return None
    if what == 1:
        return array.ravel()[: int(rng.integers(array.size + 1))]
    if what == 2:
        return np.concatenate([array.ravel()] * int(rng.integers(1, 4)) + [np.zeros(int(rng.integers(5)))])
    if what == 3:
        with np.errstate(all="ignore"):
            return array.astype(str(rng.choice(_KINDS)))
    if what == 4:
        return array.reshape((*array.shape, 1)) if rng.integers(2) else array.reshape((1, *array.shape))
    filled = array.copy()
    if filled.size:
        with np.errstate(all="ignore"):
            # an earlier change may have made it an array of whole numbers, which hold no infinity
            value = np.asarray(rng.choice(_FILLS)).astype(filled.dtype)
            filled.flat[int(rng.integers(filled.size))] = value
    return filled


def _change_note(notes: dict[str, Any], rng: np.random.Generator) -> None:
    inner = [notes, *(value for value in notes.values() if isinstance(value, dict))]
    table = inner[int(rng.integers(len(inner)))]
    if table:
        table[str(rng.choice(sorted(table)))] = copy.deepcopy(_NOTES[int(rng.integers(len(_NOTES)))])


def _other_model(model: Any, rng: np.random.Generator) -> Any:
    seen = int(rng.integers(1, 4))
    latent = seen + int(rng.integers(0, 9))
    drift = palrnn.initial_alrnn(latent, seen, int(rng.integers(latent + 1)), seed=int(rng.integers(99)))
    return drift if rng.integers(3) == 0 else palrnn.PALRNN(drift, 0.3, 0.2, float(rng.choice([0.5, 0.6])))


def child(kind: str, folder: Path, seed: int, begin: int, end: int, seconds: float) -> None:
    """Continue from the files ``begin`` to ``end - 1``; note in ``folder/at`` which one is next."""
    subject, run = subjects()[kind], folder / "run"
    shutil.rmtree(run, ignore_errors=True)  # the last child's
    good = interrupted(subject, run)
    (run / _FILE).write_bytes(good)
    subject.go(run, quiet)  # whatever a whole run imports and compiles is there before memory is limited
    limit_memory(1.0)
    signal.signal(signal.SIGALRM, _late)
    seen, faults, until = Counter[str](), [], time.monotonic() + seconds
    number = begin
    for number in range(begin, end):
        (folder / "at").write_text(str(number))
        rng = np.random.default_rng((seed, number))
        data = crafted(good, folder, rng) if number % 2 else mutated(good, rng)
        (run / _FILE).write_bytes(data)
        signal.alarm(_MOST_SECONDS)
        outcome = _outcome(subject, run)
        signal.alarm(0)
        if outcome in ("continued", "refused"):
            seen[outcome] += 1
        else:
            faults.append(f"{kind} {seed}/{number}: {outcome}")
        if time.monotonic() > until:
            break
    print(json.dumps({"next": number + 1, **seen, "faults": faults}))


def _late(*_: Any) -> None:
    raise TimeoutError(f"took more than {_MOST_SECONDS} s")


def _outcome(subject: Subject, run: Path) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = subject.go(run, quiet)
    except (palrnn.TrainingDivergedError, palrnn.FilterDiedError):  # numbers that fit, and lead nowhere
        return "refused"
    except ValueError as error:
        said = str(error)
        if _FILE not in said and "run" not in said:
            return f"an error that does not name the file: {said[:200]}"
        return "refused" if len(said.splitlines()) == 1 else f"not one line: {said[:200]}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    model = getattr(result.model, "drift", result.model)
    return "continued" if np.isfinite(model.theta).all() else "a model that is not finite"


def resumed(kind: str, folder: Path, count: int, seconds: float, seed: int) -> dict[str, Any]:
    """Continue from ``count`` files, or as many as ``seconds`` allow, in one child after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    at, faults, seen = 0, [], Counter[str]()
    until = time.monotonic() + seconds
    while at < count and time.monotonic() < until and len(faults) < 20:
        (folder / "at").write_text(str(at))
        words = ["--child", kind, "--begin", str(at), "--end", str(min(count, at + _PER_CHILD))]
        left = ["--seconds", str(until - time.monotonic()), "--seed", str(seed)]
        done = subprocess.run(
            [sys.executable, "-m", "torture.resumes", str(folder), *words, *left],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            said = json.loads(done.stdout.splitlines()[-1])
            at = said["next"]
            faults += said["faults"]
            seen.update({name: said.get(name, 0) for name in ("continued", "refused")})
        else:
            died = int((folder / "at").read_text())
            seen["lost"] += died - at  # what the child had counted died with it
            faults.append(
                f"{kind} {seed}/{died}: the process left with {done.returncode}: {done.stderr[-300:]}"
            )
            at = died + 1
    return {"tried": at, **{name: seen[name] for name in ("continued", "refused", "lost")}, "faults": faults}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=20_000, help="files for each kind of run")
    parser.add_argument("--seconds", type=float, default=300.0, help="the most for each kind of run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help="one kind of run, in this process")
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=0)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.folder, given.seed, given.begin, given.end, given.seconds)
    else:
        found = {
            name: resumed(name, given.folder / name, given.count, given.seconds, given.seed)
            for name in ("train", "tune")
        }
        problems = [fault for each in found.values() for fault in each.pop("faults")]
        print(json.dumps({"runs": found, "faults": problems}))
