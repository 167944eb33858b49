"""The field's numbers beside ours, as docs/field.md shows them: `make benchmark-field`.

    python -m benchmarks.field --runs results/field --write docs/field.md
    python -m benchmarks.field --runs results/field --only flows --methods default
    python -m benchmarks.field --runs results/field --only real --series ecg.npy fmri.npy

Each model is one job, and its result one JSON file in the folder of runs: the command continues where it
stopped, and several processes may share the folder, since a job that another one has begun is passed over
(--again takes jobs that were begun and not ended). Needs the extra `field`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palrnn.engine.files import write_text
from palrnn.engine.plain import plain

from ..document import publish
from . import column, contexts, flows, lorenz, real, tables, trials

BEGIN, END = "<!-- tables of benchmarks/field -->", "<!-- end of field -->"
PARTS = {
    "lorenz": lorenz,
    "column": column,
    "contexts": contexts,
    "flows": flows,
    "real": real,
    "trials": trials,
}


@dataclass(frozen=True)
class Job:
    """One model: its ``part``, what it is of, how it is made, and with which seed."""

    part: str
    name: str
    method: str
    seed: int
    run: Callable[[], dict[str, Any]]

    def file(self, folder: Path) -> Path:
        return folder / self.part / f"{self.name}-{self.method}-{self.seed}.json"


def jobs(
    only: list[str], methods: list[str] | None, series: list[Path], seeds: int | None = None
) -> Iterator[Job]:
    """Yield all jobs, the quick ones of every part first."""
    listed = [
        Job(part, name, method, seed, run)
        for part in only
        for name, method, seed, run in PARTS[part].jobs(series)
        if (methods is None or method in methods) and (seeds is None or seed < seeds)
    ]
    order = ("default", "published size", "trial", "search", "reservoir")
    yield from sorted(listed, key=lambda job: (order.index(job.method), job.seed))


def done(job: Job, folder: Path, *, again: bool) -> bool:
    """Do a job, unless it is done or somebody does it; return whether it was done here."""
    file = job.file(folder)
    mark = file.with_suffix(".begun")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() or (mark.exists() and not again):
        return False
    try:
        os.close(os.open(mark, os.O_CREAT | (0 if again else os.O_EXCL)))
    except FileExistsError:
        return False
    begun, used = time.perf_counter(), time.process_time()
    found = job.run()
    found = {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - used} | found
    write_text(file, json.dumps(plain(found), indent=1))
    mark.unlink(missing_ok=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("results/field"), help="where results are kept")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--methods", nargs="*", help="default, published size, search, reservoir")
    parser.add_argument("--seeds", type=int, help="only the first so many of each")
    parser.add_argument("--series", type=Path, nargs="*", default=[], help="files to learn as well")
    parser.add_argument("--again", action="store_true", help="take jobs that were begun and not ended")
    parser.add_argument("--tables", action="store_true", help="run nothing, show what there is")
    parser.add_argument("--write", type=Path, help="the document that holds the tables")
    chosen = parser.parse_args()
    for job in () if chosen.tables else jobs(chosen.only, chosen.methods, chosen.series, chosen.seeds):
        if done(job, chosen.runs, again=chosen.again):
            found = json.loads(job.file(chosen.runs).read_text(encoding="utf-8"))
            print(
                f"{job.part} {job.name}, {job.method}, seed {job.seed}: {tables.sentence(found)}", flush=True
            )
    there = [part for part in PARTS if any((chosen.runs / part).glob("*.json"))]
    text = "\n\n".join(tables.table(part, chosen.runs / part) for part in there)
    publish(text, chosen.write, BEGIN, END)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
