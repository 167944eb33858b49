"""Abuse palrnn for up to 45 minutes, print what was counted, and write docs/reliability.md.

`python torture/run.py [--minutes 45] [--only NAME ...] [--again] [--seed 0]`

What each stage saw is kept in torture/last.json as soon as it is done. A stage that went well with these very
sources (of palrnn; not of the torture) is not repeated, unless --again says so: a run that was cut off goes
on where it was. The page
shows the last figures of every stage.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from palrnn.engine.files import write_json, write_text  # noqa: E402
from torture.page import reliability_page  # noqa: E402

#: What a full run must reach; less is a fault of the run, not of palrnn.
_KILLS, _RESUMED, _PAIRS = 50, 20_000, 20
_LAST = ROOT / "torture" / "last.json"
_ROOMS = ("data", "model", "invariants", "forcing", "inference", "geometry", "tuning")


class Stage(NamedTuple):
    """A part of the torture: the words after ``python``, or of ``make``; its time; more environment."""

    words: list[str]
    share: float
    environment: dict[str, str]


def stages(folder: Path, seed: int, seconds: float) -> dict[str, Stage]:
    """Return the stages, the longest first; ``seconds`` is the time for everything."""
    kills = {
        "reproduce": 0.4,
        "report": 0.3,
        "tune": 0.2,
        "search": 0.2,
        "geometry": 0.2,
        "train": 0.15,
        "import-torch": 0.1,
        "zoo": 0.1,
    }
    bounds = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "checked kernels")}
    tests = ["-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout", "900"]
    planned = {
        "bounds": Stage([*tests, *(f"tests/{room}" for room in _ROOMS)], 0.6, bounds),
        # in an environment of its own, which is made by the first run
        "lowest versions": Stage(["make", "test-lowest"], 0.6, {}),
        "mutations": Stage(_module("mutations", folder / "files", "--seconds", 0.04 * seconds), 0.4, {}),
        # where memory is written past an end, kernels with checked bounds say so
        "resumes": Stage(
            _module("resumes", folder / "resumed", "--count", 12_000, "--seconds", 0.15 * seconds),
            0.4,
            {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "checked runs")},
        ),
        **{
            f"kill {name}": Stage(
                _module(
                    "kills",
                    name,
                    folder / f"kills-{name}",
                    "--seed",
                    seed,
                    "--seconds",
                    0.75 * share * seconds,
                ),
                share,
                {},
            )
            for name, share in kills.items()
        },
        "races": Stage(
            _module("races", folder / "races", "--seed", seed, "--seconds", 0.15 * seconds), 0.2, {}
        ),
        "guests": Stage([*tests, "-rs", "tests/trust/test_guests.py"], 0.2, {}),
        "claims": Stage(_module("claims", folder / "claims"), 0.1, {}),
        "faults": Stage(_module("faults", folder / "faults"), 0.3, {}),
        "load local": Stage(
            _module("load", "local", folder / "local", "--seed", seed, "--every", 1), 0.15, {}
        ),
        "load dask": Stage(_module("load", "dask", folder / "dask", "--seed", seed, "--every", 2), 0.2, {}),
        "bad input": Stage(_module("bad_inputs", "--seed", seed, "--seconds", 0.04 * seconds), 0.15, {}),
        "commands": Stage(_module("commands", folder / "commands"), 0.15, {}),
        "extremes": Stage(_module("extremes"), 0.15, {}),
        "repeat": Stage(_module("repeat", "--compare"), 0.3, {}),
    }
    return planned


def _module(name: str, *words: Any) -> list[str]:
    return ["-m", f"torture.{name}", *map(str, words)]


def ran(name: str, stage: Stage, seconds: float) -> dict[str, Any]:
    """Run one stage; whatever it is, the result has a list of faults."""
    begun = time.monotonic()
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | stage.environment
    try:
        done = subprocess.run(
            stage.words if stage.words[0] == "make" else [sys.executable, *stage.words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=max(60.0, stage.share * seconds),
        )
    except subprocess.TimeoutExpired:
        return {"faults": [f"was not done after {stage.share * seconds:.0f} s"], "unfinished": True}
    lines = done.stdout.strip().splitlines() or [""]
    if name in ("bounds", "lowest versions", "guests"):
        seen: dict[str, Any] = {"summary": lines[-1], "tests": _passed(done.stdout)}
        seen["faults"] = [] if done.returncode == 0 else lines[-12:]
    elif done.returncode != 0:
        seen = {"faults": [f"left with {done.returncode}: {done.stderr[-800:]}"]}
    else:
        seen = json.loads(lines[-1])
        seen["faults"] += _too_few(name, seen)
    return seen | {"wall": round(time.monotonic() - begun, 1)}


def _too_few(name: str, seen: dict[str, Any]) -> list[str]:
    """Return what a stage has not reached in its time."""
    if name.startswith("kill "):
        found, wanted = seen["kills"], _KILLS
    elif name == "resumes":
        found, wanted = sum(run["tried"] - run["lost"] for run in seen["runs"].values()), _RESUMED
    elif name == "races":
        found, wanted = seen["pairs"], _PAIRS
    else:
        return []
    return [] if found >= wanted else [f"{found:,} of {wanted:,} in the time that there was"]


def tree() -> str:
    """Return a digest of the sources: what figures are figures of."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "src").rglob("*.py")):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def known() -> dict[str, dict[str, Any]]:
    """Return what the stages saw the last time that each was run."""
    if not _LAST.is_file():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(_LAST.read_text(encoding="utf-8"))
    return found


def _passed(text: str) -> int:
    """Return how many tests passed, counted by their dots."""
    rows = [line.split("[")[0].strip() for line in text.splitlines() if line.rstrip().endswith("%]")]
    return sum(row.count(".") for row in rows)


def main() -> None:
    """Run all stages, two at a time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="some of the stages, by name")
    parser.add_argument("--again", action="store_true", help="repeat stages that are done for these sources")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "reliability.md")
    given = parser.parse_args()
    seconds, begun, sources, found = 60.0 * given.minutes, time.monotonic(), tree(), known()
    writing = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="palrnn-torture-") as place:
        planned = stages(Path(place), given.seed, seconds)
        if unknown := set(given.only or ()) - planned.keys():
            parser.error(f"no stage {', '.join(sorted(unknown))}; there are {', '.join(planned)}")
        found = {name: seen for name, seen in found.items() if name in planned}
        if given.only:
            planned = {name: stage for name, stage in planned.items() if name in given.only}
        if not given.again:
            done = [name for name in planned if _is_done(found.get(name, {}), sources)]
            planned = {name: stage for name, stage in planned.items() if name not in done}
            if done:
                print(f"done for these sources: {', '.join(done)}", flush=True)

        def work(item: tuple[str, Stage]) -> None:
            name, stage = item
            # no stage may end after the whole is due
            left = max(60.0, seconds - (time.monotonic() - begun))
            seen = ran(name, stage._replace(share=min(stage.share, left / seconds)), seconds)
            shown = {key: value for key, value in seen.items() if key != "differences"}
            print(f"{name}: {json.dumps(shown)}", flush=True)
            with writing:
                found[name] = seen | {"tree": sources}
                write_json(_LAST, found)
                write_text(given.page, reliability_page(found))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, planned.items()))
    write_text(given.page, reliability_page(found))
    faults = [f"{name}: {fault}" for name, seen in found.items() for fault in seen["faults"]]
    print("\n".join(faults) if faults else "no faults")
    sys.exit(1 if faults else 0)


def _is_done(seen: dict[str, Any], sources: str) -> bool:
    return seen.get("tree") == sources and not seen["faults"]


if __name__ == "__main__":
    main()
