"""Run every benchmark, each in a process of its own with one thread: `make bench`, or `run.py training`.

It lists the aims that were missed at the end, and fails only if a benchmark cannot be run.
Files named `peers_*` hold other packages' ways to do the same; files named `paper_*` take long and run alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = ("run", "clock", "compare", "peers_", "paper_")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}


def run(file: Path) -> tuple[int, list[str]]:
    """Run one benchmark, showing what it prints; return its exit code and the aims that it missed."""
    missed = []
    with subprocess.Popen(
        [sys.executable, str(file)],
        env=os.environ | ONE_THREAD | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("aim, ") and line.rstrip().endswith(": MISSED"):
                missed.append(line.strip().removeprefix("aim, ").removesuffix(": MISSED"))
    return process.returncode, missed


def main(folder: Path = HERE) -> int:
    """Run the benchmarks that were asked for, or all; 1 if one of them failed to run, missed aims or not."""
    files = [path.stem for path in folder.glob("*.py")]
    names = sys.argv[1:] or sorted(name for name in files if not name.startswith(SKIPPED))
    missed, failed = [], []
    for name in names:
        print(f"\n== {name}", flush=True)
        code, aims = run(folder / f"{name}.py")
        missed += [f"{name}: {words}" for words in aims]
        failed += [name] if code else []
    print("\naims missed: " + ("none" if not missed else "".join(f"\n  {words}" for words in missed)))
    if failed:
        print(f"failed to run: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
