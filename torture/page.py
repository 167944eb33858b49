"""docs/reliability.md, from what the torture counted."""

from __future__ import annotations

import platform
from typing import Any

from palrnn.engine.vector_code import REGISTER_BYTES

_COMMANDS = ("train", "search", "tune", "geometry", "report", "reproduce", "zoo", "import-torch")


def reliability_page(found: dict[str, dict[str, Any]]) -> str:
    """Return the page; what was not run is left out."""
    faults = sum(len(seen["faults"]) for seen in found.values())
    parts = [_opening(found, faults)]
    sections = (
        _kills,
        _races,
        _faults,
        _inputs,
        _files,
        _resumes,
        _claims,
        _numbers,
        _repeatability,
        _load,
        _guests,
        _bounds,
        _lowest,
    )
    for section in sections:
        if text := section(found):
            parts.append(text)
    parts.append(_faults_found(found))
    return "\n".join(part for part in parts if part)


def _opening(found: dict[str, dict[str, Any]], faults: int) -> str:
    verdict = "Nothing broke." if not faults else f"{faults} faults, listed at the end."
    if len({seen.get("tree") for seen in found.values()}) > 1:
        verdict += (
            "\nBut the stages were not all run on the same sources, some of them on an older version:\n"
            "a whole run of the present version is still to be made.\n"
        )
    return f"""# Reliability

What happens to palrnn when things go wrong, measured by one command, `make torture`, which writes this page
(here: {platform.system()}, Python {platform.python_version()}, {platform.machine()} with registers of
{REGISTER_BYTES} bytes; each figure is that of the stage's last run).
{verdict} Short versions of everything run in `make test`; how it works is in `torture/README.md`.
"""


def _kills(found: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name in _COMMANDS:
        seen = found.get(f"kill {name}", {})
        if "kills" in seen:
            broken = len(seen["faults"])
            rows.append(
                f"| `palrnn {name}` | {seen['kills']} | {seen['rounds']} | {seen['litter']} | {broken} |"
            )
    if not rows:
        return ""
    table = "\n".join(rows)
    return f"""## kill -9

The commands below are killed at random moments, continued, killed again, and at last left to finish.
After every kill all files with a proper name must be whole, and no finished unit may be lost. At the end the
folder must hold the bytes of a run that was never disturbed (apart from times and names of machines).

| command | kills survived | runs compared byte by byte | temporary files left behind | faults |
|---|---|---|---|---|
{table}

A temporary file that a kill leaves behind begins with a dot and ends in `.tmp`; nothing ever reads one.
"""


def _faults(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("faults", {})
    if "tries" not in seen:
        return ""
    kinds = "; ".join(seen["kinds"])
    return f"""## Disks

{seen["tries"]} tries, the commands that write on each of: {kinds}.

Each time one line of explanation and exit code 1 were required, files that had been there had to stay as
they were, and no file could be half written.
"""


def _inputs(found: dict[str, dict[str, Any]]) -> str:
    functions, commands = found.get("bad input", {}), found.get("commands", {})
    lines = []
    if "inputs" in functions:
        lines.append(
            f"- {functions['functions']} public functions and classes, {functions['arguments']} arguments: "
            f"**{functions['inputs']:,} bad or extreme values** one at a time, and "
            f"**{functions['mixtures']:,}** calls with two at once. Wrong values must give a `ValueError` "
            "that names the argument; extreme ones a result without NaN, or an error that says why. "
            f"Not looked at: NaN in the results of {functions['nan_allowed']} functions that document it "
            f"(a run that diverged has no exponent), and {functions['untried']} arguments, which are flags, "
            "callbacks, names and folders for the most part."
        )
    if "lines" in commands:
        lines.append(
            f"- **{commands['lines']} command lines** with wrong files, settings and options: one line on "
            "standard error, exit code 1 or 2."
        )
    return "## Bad input\n\n" + "\n".join(lines) + "\n" if lines else ""


def _files(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("mutations", {})
    if "files" not in seen:
        return ""
    rows = "\n".join(
        f"| `.{name}` | {n['tried']:,} | {n['read']:,} | {n['refused']:,} | {n['slowest']:.2f} |"
        for name, n in seen["files"].items()
    )
    return f"""## Files from outside

Checkpoints, series and configurations are data, never code: nothing is unpickled (torch files, which are
pickles, go through torch's reader of weights only). A seeded fuzzer mutates good files; reading one must work
or give the one-line error of its format.

| kind | mutated files tried | still readable | refused | slowest, s |
|---|---|---|---|---|
{rows}

All this took {seen["megabytes"]} MB of memory more than reading one good file of each kind (the limit was
1 GiB).
"""


def _resumes(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("resumes", {}).get("runs")
    if not seen:
        return ""
    rows = "\n".join(
        f"| `{name}` | {n['tried']:,} | {n['continued']:,} | {n['refused']:,} | {n['lost']} |"
        for name, n in seen.items()
    )
    return f"""## Going on from a damaged file

Training and tuning are continued from mutated checkpoints, and from whole ones in which an array has another
length, type or content, a note says something else, or the model is another. Each run goes on, or is refused
in one line that names the file, before a kernel sees anything. This happens in child processes, whose death
is a fault, with kernels that check every index.

| run | files continued from | went on | refused | lost with a child |
|---|---|---|---|---|
{rows}
"""


def _claims(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("claims", {}).get("readers")
    if not seen:
        return ""
    rows = "\n".join(
        f"| {name} | {n['files']:.0f} | {n['refused']:.0f} | {n['megabytes']:.1f} | {n['seconds']:.2f} |"
        for name, n in seen.items()
    )
    return f"""## Files that claim too much

Headers that claim 10^9 to 10^12 numbers, archives that unpack to a thousand times their size, cells and
brackets without end; each read in a process of its own. Those not refused claim no more than a setting may
say. Memory is the peak above what the process had before, time is that of the processor.

| reader | files | refused | largest peak, MB | longest, s |
|---|---|---|---|---|
{rows}
"""


def _races(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("races", {})
    if "pairs" not in seen:
        return ""
    shares = ", ".join(f"{count} of `palrnn {name}`" for name, count in seen["commands"].items())
    return f"""## Two writers in one folder

{seen["pairs"]} pairs of the same command with another seed started at once in one folder ({shares}). One of
them wrote, the other was refused in one line that names the process, and the folder held the bytes that the
first would have written alone.
"""


def _lowest(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("lowest versions", {})
    if "tests" not in seen:
        return ""
    return f"""## Old versions

All tests under the lowest versions that `pyproject.toml` allows (`constraints-lowest.txt`, `make
test-lowest`): {seen["tests"]} passed.
"""


def _numbers(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("extremes", {})
    if "cases" not in seen:
        return ""
    return f"""## Numbers at the edge

{seen["cases"]:,} cases of training, teacher forcing, filter, smoother, observed information, fixed points,
Lyapunov exponents and tuning: noise from 1e-4 to 10, M = 1, N = M, P = 0 and P = M, tau = 1 and beyond T, one
particle, one path, models whose weights are 0 or 1000. {seen["refused"]} ended in an error that says why
(exploding models, diverging training). In the others results were finite (but for exponents of minus
infinity, where a map loses a dimension) and covariances positive semi-definite up to rounding.
{seen["long"]} computations over a million steps took {seen["long_seconds"]:g} s together.
"""


def _repeatability(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("repeat", {}).get("differences")
    if not seen:
        return ""
    names = list(seen)
    parts = list(next(iter(seen.values())))
    head = "| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names)
    rows = "\n".join(
        f"| {part} | "
        + " | ".join("the same bytes" if not seen[n][part] else f"{seen[n][part]:.0e}" for n in names)
        + " |"
        for part in parts
    )
    return f"""## The same seed, the same bytes

On one machine, results depend on the seed and on nothing else: not on the number of threads, worker processes
or Dask workers, nor on where a run was interrupted. Between machines, the matrix products of BLAS and the
compiled kernels may add in another order.

The first process that uses a kernel compiles it, later ones load it from the cache; both must round alike,
with and without AVX-512. Left to itself, Numba does not see to that: a kernel's code holds
copies of the functions that it calls, optimised once more in their place, with the names of the originals,
and of several copies of one name a process runs the one that it met first. A kernel just compiled then runs
with the originals, one from the cache with its copies, whose sums may be in another order. palrnn gives the
copies names of their own (`palrnn.engine.kernel_library`; `tests/engine/test_kernel_cache.py` fails without).

Bytes are compared of everything; where they differ, the largest relative
difference of the first 200 numbers from those of one thread is shown, each part from equal input:

{head}
{rows}

Rounding grows: in simulated chaos by a factor e per Lyapunov time, so that two kinds of processor should
agree on about 4,000 steps of Lorenz-63 at 0.01 and no longer; in training, which runs in single precision,
over its updates (200 here; after the paper's 100,000 expect different weights). For the same bits, keep the
kind of processor and the versions of NumPy, SciPy and Numba.
"""


def _load(found: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name in ("load local", "load dask"):
        seen = found.get(name, {})
        if "tasks" in seen:
            rows.append(
                f"| {seen['engine']} | {seen['tasks']:,} | {seen['kills']} | {seen['seconds']:g} | "
                f"{seen['megabytes']} | {seen['growth']:+.1f} |"
            )
    if not rows:
        return ""
    table = "\n".join(rows)
    return f"""## Load

A sweep of small tasks over two workers, one of which is killed every few seconds: every result is there
exactly once. Memory is that of the coordinator; growth compares the last quarter of the run with the second.

| engine | tasks with a result | workers killed | s | most memory, MB | growth, MB |
|---|---|---|---|---|---|
{table}
"""


def _guests(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("guests", {})
    if "tests" not in seen:
        return ""
    return f"""## As a guest

In a pool of fresh processes, under joblib (processes and threads), with streams that are no files, and in the
kernel of a notebook, palrnn gives the bytes that it gives alone: {seen["tests"]} tests passed.
"""


def _bounds(found: dict[str, dict[str, Any]]) -> str:
    seen = found.get("bounds", {})
    if "tests" not in seen:
        return ""
    return f"""## Bounds

The tests of all subpackages with compiled kernels, compiled anew with `NUMBA_BOUNDSCHECK=1`:
{seen["tests"]} passed.
"""


def _faults_found(found: dict[str, dict[str, Any]]) -> str:
    lines = [f"- {name}: {fault}" for name, seen in found.items() for fault in seen["faults"]]
    return "## Faults\n\n" + "\n".join(lines) + "\n" if lines else ""
