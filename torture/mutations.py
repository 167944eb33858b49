"""Damaged and hostile files: checkpoints, series, configurations.

    python -m torture.mutations FOLDER --count 20000 --seconds 60 --seed 0      prints what it saw as JSON

A seeded mutator takes a good file and flips bits, cuts, doubles, splices, or edits what a format is made of
(lengths, shapes, offsets, numbers, brackets). Reading the result must work or give the error of that format;
nothing else, and not in more memory than the file is worth.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import resource
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import palrnn
from palrnn.model import checkpoint_bytes
from torture import julia_file

_CLAIMS = (b"1000000000000", b"9223372036854775807", b"18446744073709551616", b"-1", b"0", b"1e999", b"nan")
_SPLICES = (
    b"\0",
    b"\xff" * 8,
    b"{}",
    b"[",
    b'"',
    b"\n",
    b",",
    b"NaN",
    b"Infinity",
    b"\xef\xbb\xbf",
    b"__metadata__",
    b"cos\nsystem\n(S'true'\ntR.",
    b"\x80\x04\x95",
    b"PK\x03\x04",
    b"'''",
    b"= [[[[",
    b"../../etc/passwd",
)


class Format(NamedTuple):
    """A kind of file: its suffix, good examples, how it is read, and the errors that may come out."""

    suffix: str
    seeds: list[bytes]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...]


class Findings(NamedTuple):
    """What a fuzzer saw: files tried, read as good, refused, and what should not have happened."""

    tried: int
    read: int
    refused: int
    faults: list[str]
    slowest: float


def formats() -> dict[str, Format]:
    """Return the kinds of files that come from outside."""
    x = palrnn.lorenz63(12, seed=1)
    model = palrnn.initial_alrnn(3, 2, 1, seed=1)
    probabilistic = palrnn.PALRNN(model, 0.1, np.array([0.1, 0.2]), 0.5)
    scale = palrnn.Standardizer(np.zeros(2), np.ones(2))
    notes = {"config": {"tau": 4, "words": "a b"}, "done": 3}
    checkpoints = [
        checkpoint_bytes(model, standardizer=scale, dt=0.1, training=notes, arrays={"x": np.ones(3)}),
        checkpoint_bytes(probabilistic),
    ]
    series, read = palrnn.SeriesError, palrnn.load_series
    return {
        "safetensors": Format(".safetensors", checkpoints, _checkpoint, (palrnn.CheckpointError,)),
        "bson": Format(".bson", [julia_file.example()], _network, (palrnn.CheckpointError,)),
        "csv": Format(".csv", _csvs(x), read, (series,)),
        "npy": Format(".npy", [_npy(x), _npy(x.astype(">f4")), _npy(np.asfortranarray(x))], read, (series,)),
        "npz": Format(".npz", [_npz(x=x), _npz(a=x, b=x)], palrnn.load_trials, (series,)),
        "parquet": Format(".parquet", [_parquet(x)], read, (series,)),
        "txt": Format(".txt", _texts(x), read, (series,)),
        "tsv": Format(".tsv", [text.replace(b" ", b"\t") for text in _texts(x)], read, (series,)),
        "mat": Format(".mat", [_mat(True, x=x), _mat(False, x=x, fs=1.0, s="word")], read, (series,)),
        "edf": Format(".edf", [_edf(x, 12), _edf(x, 4)], read, (series,)),
        "toml": Format(".toml", _tomls(), _settings, (ValueError,)),
    }


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return ``data`` after one to four changes."""
    for _ in range(int(rng.integers(1, 5))):
        data = _CHANGES[int(rng.integers(len(_CHANGES)))](data, rng)
    return data


def fuzz(kind: Format, count: int, seed: int, folder: Path, seconds: float = 1e9) -> Findings:
    """Read ``count`` mutated files, or as many as ``seconds`` allow."""
    rng = np.random.default_rng(seed)
    file, outcome, faults, slowest = folder / f"mutated{kind.suffix}", Counter[str](), [], 0.0
    end = time.monotonic() + seconds
    for number in range(count):
        data = mutated(kind.seeds[int(rng.integers(len(kind.seeds)))], rng)
        file.write_bytes(data)
        start = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = kind.read(file)
            outcome["read"] += 1
            if _holds_nan(result):
                faults.append(f"{kind.suffix} {seed}/{number}: NaN was read as good")
        except kind.errors as error:
            outcome["refused"] += 1
            if len(str(error).splitlines()) != 1:
                faults.append(f"{kind.suffix} {seed}/{number}: not one line: {error}")
        except BaseException as error:
            faults.append(f"{kind.suffix} {seed}/{number}: {type(error).__name__}: {error}"[:300])
        now = time.monotonic()
        slowest = max(slowest, now - start)
        if now > end:
            break
    tried = outcome.total() + len([fault for fault in faults if "NaN was read" not in fault])
    return Findings(tried, outcome["read"], outcome["refused"], faults, slowest)


def limit_memory(gibibytes: float) -> None:
    """Let this process have no more address space than it has now and ``gibibytes`` more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak_memory() -> int:
    """Return the most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    if not data:
        return data
    raw = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(raw)


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _remove(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + data[at + int(rng.integers(1, 40)) :]


def _double(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 60))
    return data[: at + size] + data[at : at + size] * int(rng.integers(1, 4)) + data[at + size :]


def _splice(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + _SPLICES[int(rng.integers(len(_SPLICES)))] + data[at:]


def _overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    new = rng.bytes(int(rng.integers(1, 17)))
    return data[:at] + new + data[at + len(new) :]


def _renumber(data: bytes, rng: np.random.Generator) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
    if not numbers:
        return data
    spot = numbers[int(rng.integers(len(numbers)))]
    return data[: spot.start()] + _CLAIMS[int(rng.integers(len(_CLAIMS)))] + data[spot.end() :]


def _reword(data: bytes, rng: np.random.Generator) -> bytes:
    words = list(re.finditer(rb"[A-Za-z_]{2,}", data))
    if len(words) < 2:
        return data
    one, other = (words[int(i)] for i in rng.integers(len(words), size=2))
    return data[: one.start()] + other.group() + data[one.end() :]


def _length(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the first eight bytes, where binary formats keep lengths."""
    length = int.from_bytes(data[:8], "little")
    changed = (length + int(rng.choice([-8, -1, 1, 8, 2**20, 2**40, 2**62]))) % 2**64
    return changed.to_bytes(8, "little") + data[8:]


_CHANGES = (_flip, _cut, _remove, _double, _splice, _overwrite, _renumber, _reword, _length)


def _checkpoint(file: Path) -> Any:
    found = palrnn.load_checkpoint(file)
    return [found.drift.theta, found.drift.E]


def _network(file: Path) -> Any:
    return palrnn.import_julia(file).theta


def _settings(file: Path) -> Any:
    from palrnn.runs import ReportSettings, RunRecord

    return RunRecord.read(file) if b"series" in file.read_bytes() else ReportSettings.from_toml(file)


def _holds_nan(result: Any) -> bool:
    if isinstance(result, list):
        return any(_holds_nan(part) for part in result)
    return isinstance(result, np.ndarray) and not np.isfinite(result).all()


def _csvs(x: np.ndarray) -> list[bytes]:
    lines = [",".join(f"{value:.4g}" for value in row) for row in x]
    dated = [f"2020-01-{day:02};{row.replace(',', ';')}" for day, row in enumerate(lines, start=1)]
    trials = [f"{i // 6},{row}" for i, row in enumerate(lines)]
    texts = (
        ["x,y,z", *lines],
        lines,
        ["date;x;y;z", *dated],
        ["trial,x,y,z", *trials],
        [row.replace(",", " ") for row in lines],
    )
    return ["\n".join(text).encode() + b"\n" for text in texts]


def _texts(x: np.ndarray) -> list[bytes]:
    texts = []
    for header in ("", "x y z", "made by hand\nx y z"):
        buffer = io.BytesIO()
        np.savetxt(buffer, x, fmt="%.6g", header=header)
        texts.append(buffer.getvalue())
    return texts


def _mat(packed: bool, **arrays: Any) -> bytes:
    import scipy.io

    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays, do_compression=packed)
    return buffer.getvalue()


def _edf(x: np.ndarray, record: int) -> bytes:
    """Return a recording of records of so many samples, by the published layout."""
    count = x.shape[1]
    digital = np.rint(x / np.abs(x).max() * 30_000).astype("<i2")
    widths = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
    texts = ("EEG", "", "uV", "-100", "100", "-32768", "32767", "", str(record), "")
    start = "0".ljust(184) + str(256 * (count + 1)).ljust(52) + str(len(x) // record).ljust(8)
    start += "1".ljust(8) + str(count).ljust(4)
    start += "".join(text.ljust(width) * count for text, width in zip(texts, widths, strict=True))
    return start.encode() + b"".join(digital[k : k + record].T.tobytes() for k in range(0, len(x), record))


def _npy(x: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, x, allow_pickle=False)
    return buffer.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _parquet(x: np.ndarray) -> bytes:
    import pandas as pd

    buffer = io.BytesIO()
    pd.DataFrame(x, columns=["x", "y", "z"]).to_parquet(buffer)
    return buffer.getvalue()


def _tomls() -> list[bytes]:
    run = (
        '[data]\nseries = "lorenz63"\ndt = 0.01\nsteps = 500\n\n[training]\nlatent_dim = 5\ngated = 2\n'
        'tau = 4\nlearning_rate = 1e-3\nkeep = "last"\n'
    )
    report = (
        '[invariants]\nsteps = 200\npairs = 2\n\n[filter]\nparticles = 16\ntarget = "exact"\n'
        '[tuning]\nconfigurations = ["calib"]\n'
    )
    return [run.encode(), report.encode()]


def tried(folder: Path, count: int, seconds: float, seed: int) -> dict[str, Any]:
    """Fuzz every format, in at most 1 GiB more memory than at the start."""
    known = formats()
    for kind in known.values():  # whatever reading imports is imported before memory is limited
        good = folder / f"good{kind.suffix}"
        good.write_bytes(kind.seeds[0])
        kind.read(good)
    before = peak_memory()
    limit_memory(1.0)
    counts, faults = {}, []
    for name, kind in known.items():
        found = fuzz(kind, count, seed, folder, seconds)
        counts[name] = {
            "tried": found.tried,
            "read": found.read,
            "refused": found.refused,
            "slowest": round(found.slowest, 3),
        }
        faults += found.faults
        if found.slowest > 5.0:
            faults.append(f"{name}: one file took {found.slowest:.1f} s")
    more = (peak_memory() - before) / 2**20
    return {"files": counts, "megabytes": round(more), "faults": faults}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="the most for each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(tried(given.folder, given.count, given.seconds, given.seed)))
