"""kill -9 at random moments: every command that writes, killed, continued, compared with an unbroken run.

A process imports palrnn and runs the command once, unbroken: that is the reference. Then it forks the same
command into a second folder and kills it after a random time, again and again, and at last lets it finish.
After every kill all files with a proper name must be whole. At the end both folders must hold the same bytes
(times and machine names apart, which are no results).

    python -m torture.kills COMMAND FOLDER --kills 50 --seed 0      prints what it saw as JSON
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import palrnn
from palrnn.engine.files import write_text

_TRAINING = """
[training]
latent_dim = 5
gated = 2
tau = 4
updates = 6000
batch_size = 4
sequence_length = 20
learning_rate = 1e-2
checkpoint_every = 100
evaluate_steps = 400
evaluate_discard = 50
"""
_TUNING = """
[tuning.saem]
length = 8
iterations = 8
windows = 8
particles = 32
paths = 4
heldout_windows = 4
rollout_steps = 300
rollout_discard = 20
evaluate_every = 1
"""
_REPORT = """
[invariants]
steps = 300
discard = 50
pairs = 2
ahead = 5
[filter]
steps = 40
particles = 16
paths = 8
[geometry]
steps = 40
particles = 16
paths = 8
passes = 2
[tuning.task.saem]
length = 8
iterations = 2
windows = 4
particles = 16
paths = 2
heldout_windows = 4
"""
#: Names of figures that differ between two runs of the same work: times, and who did it.
_TIMES = ("seconds", "machine", "host", "started", "heartbeat", "pid", "computation")
_RESULTS = Path(__file__).resolve().parents[1] / "results" / "paper"
#: Files about the run rather than its results.
_ABOUT = ("timings.jsonl", "sessions.jsonl", "run.json", "computation.csv", "records.zip", ".lock")


class Command(NamedTuple):
    """The words of a command, what must be there before, and a count of finished units in a folder."""

    words: Callable[[Path], list[str]]
    prepare: Callable[[Path], None]
    units: Callable[[Path], int]
    #: A command that never replaces its own output: once the file is there, it is done.
    once: bool = False


def _prepare_series(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "train.toml", '[data]\nseries = "lorenz63"\nsteps = 1500\n' + _TRAINING)
    write_text(folder / "tune.toml", _TUNING)
    write_text(folder / "report.toml", _REPORT)
    np.save(folder / "series.npy", palrnn.lorenz63(400, seed=9))


def _prepare_model(folder: Path) -> None:
    _prepare_series(folder)
    _run(
        [
            "train",
            "--config",
            str(folder / "train.toml"),
            "--updates",
            "400",
            "-o",
            str(folder / "model"),
            "-q",
        ]
    )


def _prepare_studies(folder: Path) -> None:
    _prepare_series(folder)
    smoke = Path(palrnn.__file__).parent / "paper" / "presets" / "smoke.toml"
    text = smoke.read_text()
    # two models and seven geometries
    for whole, part in (("updates = 600", "updates = 100"), ("[0.1, 0.5]", "[0.1]"), ("[8, 16]", "[16]")):
        text = text.replace(whole, part)
    write_text(folder / "small.toml", text)


def _prepare_torch(folder: Path) -> None:
    import torch

    _prepare_series(folder)
    model = palrnn.initial_alrnn(40, 3, 10, seed=1)
    parts = {"A": model.A, "W": model.W, "h": model.h, "B": np.ones((3, 40))}
    torch.save({name: torch.tensor(part) for name, part in parts.items()}, folder / "published.pt")


def _updates(folder: Path) -> int:
    file = folder / "out" / "checkpoint.safetensors"
    return int(palrnn.load_checkpoint(file).training["done"]) if file.is_file() else 0


def _iterations(folder: Path) -> int:
    file = folder / "out" / "checkpoint.safetensors"
    return 1 + int(palrnn.load_checkpoint(file).training["saem"]["iteration"]) if file.is_file() else 0


def _files(pattern: str) -> Callable[[Path], int]:
    return lambda folder: len(list(folder.glob(pattern)))


def _words(line: str) -> Callable[[Path], list[str]]:
    """DIR stands for the folder, RESULTS for those of the paper; paths may have spaces."""
    return lambda folder: [
        word.replace("DIR", str(folder)).replace("RESULTS", str(_RESULTS)) for word in line.split()
    ]


COMMANDS = {
    "train": Command(_words("train --config DIR/train.toml -o DIR/out -q"), _prepare_series, _updates),
    "search": Command(
        _words(
            "search DIR/series.npy --updates 400 --latent-dim 5 --gated 2 --sequence-length 20 "
            "--batch-size 2 --workers 1 -o DIR/out -q"
        ),
        _prepare_series,
        _files("out/candidates/tasks/*/[!.]*"),
    ),
    "tune": Command(
        _words("tune DIR/model DIR/series.npy --config DIR/tune.toml --threads 1 -o DIR/out -q"),
        _prepare_model,
        _iterations,
    ),
    "geometry": Command(
        _words(
            "geometry DIR/model DIR/series.npy --steps 40 --particles 16 --paths 8 --draws 2 -o DIR/out -q"
        ),
        _prepare_model,
        _files("out/[!.]*"),
    ),
    "report": Command(
        _words("report DIR/model --config DIR/report.toml -o DIR/page.html -q"),
        _prepare_model,
        _files("model/findings/[!.]*"),
    ),
    "reproduce": Command(
        _words("reproduce gap --scale DIR/small.toml --workers 2 -o DIR/out -q"),
        _prepare_studies,
        _files("out/tasks/*/[!.]*"),
    ),
    "zoo": Command(
        _words("zoo RESULTS p0.1-o0.1-t16-s0 -o DIR/out.safetensors -q"),
        _prepare_series,
        _files("out.safetensors"),
        once=True,
    ),
    "import-torch": Command(
        _words("import-torch DIR/published.pt --gated 10 -o DIR/out.safetensors -q"),
        _prepare_torch,
        _files("out.safetensors"),
    ),
}


def torture(name: str, folder: Path, kills: int, seed: int, seconds: float = 1e9) -> dict[str, Any]:
    """Kill a command ``kills`` times (fewer if ``seconds`` run out) and return what was seen."""
    command, rng = COMMANDS[name], np.random.default_rng(seed)
    whole = folder / "whole"
    command.prepare(whole)
    _run(command.words(whole))  # compiles, so that the forks do not
    fresh = folder / "timed"
    command.prepare(fresh)
    begun = time.monotonic()
    _finish(command.words(fresh))
    full = time.monotonic() - begun
    faults = [f"two unbroken runs differ: {d}" for d in differences(whole, fresh)]
    survived, rounds, litter, lost, end = 0, 0, 0, 0, time.monotonic() + seconds
    while survived < kills and time.monotonic() < end:
        broken = folder / f"broken{rounds}"
        command.prepare(broken)
        units = command.units(broken)
        for _ in range(min(5, kills - survived)):
            child = _fork(command.words(broken))
            time.sleep(float(rng.uniform(0.0, full)))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            survived += 1
            faults += [f"kill {survived}: {fault}" for fault in half_written(broken)]
            now = command.units(broken)
            lost += max(0, units - now)
            units = now
        litter += sum(path.name.endswith(".tmp") for path in _below(broken))
        if not (command.once and command.units(broken)):
            _finish(command.words(broken))
        faults += [f"after {survived} kills: {d}" for d in differences(whole, broken)]
        rounds += 1
    if lost:
        faults.append(f"{lost} finished units were lost")
    return {
        "command": name,
        "kills": survived,
        "rounds": rounds,
        "seconds": round(full, 2),
        "litter": litter,
        "faults": faults,
    }


def half_written(folder: Path) -> list[str]:
    """Return files with a proper name that are not whole."""
    faults = []
    for path in _below(folder):
        if path.name.startswith(".") or path.name in ("timings.jsonl", "sessions.jsonl"):
            continue
        try:
            _read_whole(path)
        except Exception as error:
            faults.append(f"{path.name} is not whole: {error}")
    return faults


def differences(one: Path, other: Path) -> list[str]:
    """Return the files in which two folders differ, times apart."""
    a, b = _contents(one), _contents(other)
    found = [f"{name} is only in one" for name in sorted(a.keys() ^ b.keys())]
    return found + [
        f"{name} differs{_where(a[name], b[name])}"
        for name in sorted(a.keys() & b.keys())
        if a[name] != b[name]
    ]


def _where(one: Any, other: Any) -> str:
    """Return which parts of two files differ, and where first, for whoever looks for the cause."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return ""
    words = [f"only one has {name}" for name in sorted(one.keys() ^ other.keys())]
    for name in sorted(one.keys() & other.keys()):
        a, b = one[name], other[name]
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            begin = max(0, at - 20) if isinstance(a, str) else at // 8 * 8
            words.append(f"{name} at {at} of {len(a)}: {a[begin : at + 40]!r} or {b[begin : at + 40]!r}")
    return " (" + "; ".join(words) + ")"


def _contents(folder: Path) -> dict[str, Any]:
    files = [path for path in _below(folder) if not path.name.startswith(".") and path.name not in _ABOUT]
    return {str(path.relative_to(folder)): _timeless(path, folder) for path in files}


def _timeless(path: Path, folder: Path) -> Any:
    """Return what is in a file without times, and without the name of the folder that it is in."""
    if path.name == "checkpoint.safetensors":
        held = palrnn.load_checkpoint(path)
        arrays = {name: array.tobytes() for name, array in held.arrays.items() if name not in _TIMES}
        notes = json.dumps(held.training, sort_keys=True)
        return arrays | {"theta": held.drift.theta.tobytes(), "E": held.drift.E.tobytes(), "notes": notes}
    if path.name == "history.csv":
        rows = [line.split(",") for line in path.read_text().splitlines()]
        kept = [i for i, name in enumerate(rows[0]) if name not in _TIMES]
        return [[row[i] for i in kept] for row in rows]
    data = path.read_bytes().replace(str(folder).encode(), b"DIR")
    return _without_times(json.loads(data)) if path.name == "summary.json" else data


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(part) for name, part in value.items() if name not in _TIMES}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


def _read_whole(path: Path) -> None:
    data = path.read_bytes()
    if path.name == "checkpoint.safetensors":
        palrnn.load_checkpoint(path)
    elif path.suffix == ".safetensors":
        from safetensors.numpy import load

        load(data)
    elif path.suffix == ".json":
        json.loads(data)
    elif path.suffix == ".toml":
        tomllib.loads(data.decode())
    elif path.suffix == ".npy":
        np.load(path, allow_pickle=False)
    elif path.suffix == ".png" and not data.endswith(b"IEND\xaeB`\x82"):
        raise ValueError("the picture is cut off")
    elif path.suffix == ".html" and not data.rstrip().endswith(b"</html>"):
        raise ValueError("the page is cut off")
    elif path.suffix == ".csv" and not data.endswith(b"\n"):
        raise ValueError("the table is cut off")


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _run(words: list[str]) -> None:
    from palrnn.cli.main import main

    try:
        main(words)
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"palrnn {' '.join(words)} left with {left.code}") from None


def _fork(words: list[str]) -> int:
    child = os.fork()
    if child == 0:
        try:
            _run(words)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return child


def _finish(words: list[str]) -> None:
    _, status = os.waitpid(_fork(words), 0)
    if status:
        raise RuntimeError(f"palrnn {' '.join(words)} left with {os.waitstatus_to_exitcode(status)}")


def main() -> None:
    """Torture one command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    print(json.dumps(torture(given.command, given.folder, given.kills, given.seed, given.seconds)))


if __name__ == "__main__":
    main()
