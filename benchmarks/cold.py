"""The first minute: what commands take from an empty cache of kernels. `python benchmarks/cold.py [command]`.

Each command runs in a fresh process on a copy of the package without kernels, then once more with the kernels
that the first run left. It prints processor seconds of both, how many kernels were compiled, and the dearest:
their own seconds, without those of the kernels that they call. It takes minutes and runs alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from clock import aim, figure

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "train": "train lorenz63 --updates 10 -o {out}",
    "evaluate": "evaluate {run}",
    "demo": "demo --updates 200 -o {out}",
}
#: Processor seconds: of a first `train`, and what a first `demo` takes more than a second one.
TRAIN_AIM, DEMO_AIM = 10.0, 25.0


def worker(words: list[str]) -> None:
    """Run one command, and write what it compiled to the file that the environment names."""
    from numba.core import event

    own: Counter[str] = Counter()
    compiled: list[str] = []
    open_calls: list[tuple[float, float]] = []

    class Compilations(event.Listener):
        def on_start(self, event: object) -> None:
            open_calls.append((time.process_time(), 0.0))

        def on_end(self, event: object) -> None:
            begun, inner = open_calls.pop()
            took = time.process_time() - begun
            if open_calls:
                open_calls[-1] = (open_calls[-1][0], open_calls[-1][1] + took)
            function = event.data["dispatcher"].py_func  # type: ignore[attr-defined]
            name = f"{function.__module__}.{function.__qualname__}"
            own[name] += took - inner
            compiled.append(name)

    event.register("numba:compile", Compilations())
    from palrnn.cli.main import main

    try:
        main(words)
    finally:
        found = {"seconds": time.process_time(), "compiled": len(compiled), "dearest": own.most_common(12)}
        Path(os.environ["PALRNN_COLD"]).write_text(json.dumps(found))


def measured(words: str, home: Path) -> dict:
    """Return what one process took; kernels are read from and written to places in ``home`` only."""
    environment = os.environ | {
        "PYTHONPATH": str(home / "src"),
        "NUMBA_CACHE_DIR": str(home / "kernels"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TMPDIR": str(home),
        "PALRNN_COLD": str(home / "found.json"),
    }
    command = [sys.executable, __file__, "--worker", *words.split()]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads((home / "found.json").read_text())


def fresh(home: Path) -> Path:
    """Put a copy of the package into ``home``, its modules compiled by Python and its kernels not."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", home / "src", ignore=ignored)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(home / "src")], check=True)
    return home


def main() -> None:
    """Measure the commands that were asked for, or all."""
    asked = sys.argv[1:] or list(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        trained = Path(folder) / "trained"
        if "evaluate" in asked:
            measured(COMMANDS["train"].format(out=trained), fresh(Path(folder) / "before"))
        for name in asked:
            home = fresh(Path(folder) / name)
            took = [
                measured(COMMANDS[name].format(run=trained, out=home / str(turn)), home) for turn in range(2)
            ]
            cold, warm = (each["seconds"] for each in took)
            print(f"palrnn {COMMANDS[name].split(' -o')[0].format(run='RUN')}")
            print(f"  processor seconds: {cold:.1f} cold, {warm:.1f} warm; {took[0]['compiled']} compiled")
            for kernel, seconds in took[0]["dearest"]:
                print(f"    {seconds:6.2f} s  {kernel}")
            figure(f"{name}, first start", cold, "processor seconds")
            figure(f"{name}, second start", warm, "processor seconds")
            if name == "train":
                aim(f"a first train takes at most {TRAIN_AIM:.0f} s ({cold:.1f})", cold <= TRAIN_AIM)
            if name == "demo":
                more = cold - warm
                aim(f"a first demo takes at most {DEMO_AIM:.0f} s more ({more:.1f})", more <= DEMO_AIM)


if __name__ == "__main__":
    worker(sys.argv[2:]) if "--worker" in sys.argv[1:2] else main()
