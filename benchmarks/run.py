"""Run every benchmark, each in a process of its own with one thread: `make bench`, or `run.py training`.

It lists the aims that were missed at the end, and fails only if a benchmark cannot be run. With `--record`
it keeps the main figures in history.csv, by processor and version, and shows them in docs/benchmarks.md.
`cold` (from an empty cache of kernels) runs alone: `run.py --record cold`. Files named `peers_*` hold other
packages' ways to do the same; files named `paper_*` take long and run alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = ("run", "clock", "compare", "cold", "history", "peers_", "paper_")
_FIGURE = re.compile(r"figure, (?P<figure>.+): (?P<value>\S+) (?P<unit>.+)")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}


def run(file: Path) -> tuple[int, list[str], list[dict[str, str]]]:
    """Run one benchmark, showing what it prints; return its exit code, missed aims and figures."""
    missed, figures = [], []
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
            found = _FIGURE.fullmatch(line.strip())
            if found:
                figures.append(found.groupdict())
    return process.returncode, missed, figures


def keep(figures: list[dict[str, str]]) -> None:
    """Add figures to the history of this processor and version."""
    sys.path.insert(0, str(HERE))
    import history

    import palrnn

    about = {"processor": history.processor(), "version": palrnn.__version__}
    rows = history.record(history.Row(**about, **each) for each in figures)
    history.show(rows)
    print(f"kept {len(figures)} figures of version {about['version']} on {about['processor']}")


def main(folder: Path = HERE) -> int:
    """Run the benchmarks that were asked for, or all; 1 if one of them failed to run, missed aims or not."""
    files = [path.stem for path in folder.glob("*.py")]
    words = [word for word in sys.argv[1:] if word != "--record"]
    names = words or sorted(name for name in files if not name.startswith(SKIPPED))
    missed, failed, figures = [], [], []
    for name in names:
        print(f"\n== {name}", flush=True)
        code, aims, told = run(folder / f"{name}.py")
        missed += [f"{name}: {words}" for words in aims]
        failed += [name] if code else []
        figures += [{"benchmark": name, **each} for each in told]
    print("\naims missed: " + ("none" if not missed else "".join(f"\n  {words}" for words in missed)))
    if "--record" in sys.argv and figures:
        keep(figures)
    if failed:
        print(f"failed to run: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
