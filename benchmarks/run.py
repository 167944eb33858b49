"""Run every benchmark, each in a process of its own with one thread: `make bench`, or `run.py training`.

Files named `peers_*` hold other packages' ways to do the same; files named `paper_*` take long and run alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = ("run", "clock", "peers_", "paper_")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}


def main() -> int:
    files = [path.stem for path in HERE.glob("*.py")]
    names = sys.argv[1:] or sorted(name for name in files if not name.startswith(SKIPPED))
    worst = 0
    for name in names:
        print(f"\n== {name}", flush=True)
        done = subprocess.run([sys.executable, HERE / f"{name}.py"], env=os.environ | ONE_THREAD, check=False)
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
