"""Two writers at once in one folder: one gets it, the other is refused in one line that names the first.

Both are the same command with another seed, forked at nearly the same time. At the end the folder must hold
exactly what the one that finished would have written alone.

    python -m torture.races FOLDER --pairs 20 --seed 0      prints what it saw as JSON
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from torture.kills import COMMANDS, differences

_SEEDS = ("1", "2")
#: Commands that fill a folder, and how a second one of them is told apart.
_RACERS = ("train", "tune", "geometry", "reproduce")


def words_of(name: str, folder: Path, seed: str) -> list[str]:
    """Return the command with its own seed; a study has it in its settings."""
    words = COMMANDS[name].words(folder)
    if name != "reproduce":
        return [*words, "--seed", seed]
    settings = folder / "small.toml"
    other = folder / f"small-{seed}.toml"
    # any setting that makes the two differ will do
    text = settings.read_text(encoding="utf-8").replace("updates = 100", f"updates = 10{seed}")
    other.write_text(text, encoding="utf-8")
    return [str(other) if word == str(settings) else word for word in words]


def forked(words: list[str], said: Path) -> int:
    """Run a command in a forked process, what it says going to a file; return the process."""
    child = os.fork()
    if child:
        return child
    try:
        from palrnn.cli.main import main

        with said.open("w", encoding="utf-8") as stream:
            sys.stderr = stream
            try:
                main(words)
            except SystemExit as left:
                stream.flush()
                os._exit(left.code if isinstance(left.code, int) else 1)
    finally:
        os._exit(99)


def race(name: str, folder: Path, alone: list[Path], delay: float) -> list[str]:
    """Let two writers race and return what was wrong."""
    COMMANDS[name].prepare(folder)
    lines = [words_of(name, folder, seed) for seed in _SEEDS]
    notes = [folder.parent / f"{folder.name}-{seed}.txt" for seed in _SEEDS]
    first = forked(lines[0], notes[0])
    time.sleep(delay)
    second = forked(lines[1], notes[1])
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in (first, second)]
    said = [note.read_text(encoding="utf-8").strip() for note in notes]
    if sorted(codes) != [0, 1]:
        return [f"{name}: left with {codes}: {said}"]
    winner = codes.index(0)
    refusal = said[1 - winner]
    faults = [] if len(refusal.splitlines()) == 1 else [f"{name}: not one line: {refusal[-300:]}"]
    # by the lock, which names the process, or, where the first was quick, by the settings that it left
    pid = (first, second)[winner]
    if not re.search(rf"process {pid}\b|was started with|other settings|holds|has \w+ =", refusal):
        faults.append(f"{name}: the refusal does not say why: {refusal[-300:]}")
    return faults + [f"{name}: {words}" for words in differences(alone[winner], folder)]


def tried(folder: Path, pairs: int, seed: int, seconds: float = 1e9) -> dict[str, Any]:
    """Race ``pairs`` pairs, shared out among the commands, or as many as ``seconds`` allow."""
    rng, faults, raced, end = (
        np.random.default_rng(seed),
        [],
        dict.fromkeys(_RACERS, 0),
        time.monotonic() + seconds,
    )
    alone: dict[str, list[Path]] = {}
    for number in range(pairs):
        name = _RACERS[number % len(_RACERS)]
        if time.monotonic() > end:
            break
        if name not in alone:
            alone[name] = [_alone(name, folder / f"{name}-alone-{own}", own) for own in _SEEDS]
        faults += race(name, folder / f"{name}-{number}", alone[name], float(rng.uniform(0.0, 0.1)))
        raced[name] += 1
    return {"pairs": sum(raced.values()), "commands": raced, "faults": faults}


def _alone(name: str, folder: Path, seed: str) -> Path:
    COMMANDS[name].prepare(folder)
    for own in _SEEDS:  # the settings of both are in both folders
        words_of(name, folder, own)
    child = forked(words_of(name, folder, seed), folder.parent / f"{folder.name}.txt")
    if os.waitpid(child, 0)[1]:
        said = (folder.parent / f"{folder.name}.txt").read_text(encoding="utf-8")
        raise RuntimeError(f"{name} alone failed: {said}")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(tried(given.folder, given.pairs, given.seed, given.seconds)))
