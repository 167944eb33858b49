"""Run every benchmark, each in a process of its own with one thread: `make bench`, or `run.py training geometry`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}


def main() -> int:
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("run", "clock"))
    worst = 0
    for name in names:
        print(f"\n== {name}", flush=True)
        done = subprocess.run([sys.executable, HERE / f"{name}.py"], env=os.environ | ONE_THREAD, check=False)
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
