"""Files that claim far more than they hold, for every reader: refused at once, in memory that is measured.

    python -m torture.claims FOLDER      prints what it saw as JSON

Each file is read in a forked process of its own, which may take 2 GiB more than it has and tells its peak.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import sys
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import palrnn
from palrnn.model import checkpoint_bytes
from torture.mutations import formats, limit_memory

#: Claims of this many numbers; the largest would take 8 TB.
_CLAIMS = (10**9, 10**10, 10**12)
_MOST_MEGABYTES, _MOST_SECONDS = 100.0, 5.0


class Claim(NamedTuple):
    """A file: which reader it is for, what it claims, and its bytes."""

    reader: str
    words: str
    data: bytes


def claims() -> Iterator[Claim]:
    """Yield the files, for each reader."""
    for count in _CLAIMS:
        for kind in ("<f8", "<f4", "|b1", "<f2"):
            npy = _npy((count // 1000, 1000), kind)
            yield Claim("npy", f"{count:.0e} numbers of {kind}", npy + b"\0" * 64)
            yield Claim("npz", f"{count:.0e} numbers of {kind}", _zipped(npy + b"\0" * 64))
        yield Claim("npy", f"{count:.0e} empty rows", _npy((count, 0), "<f8"))
        yield Claim("safetensors", f"a matrix of {count:.0e} rows", _tensors(count))
        yield Claim("zoo", f"a matrix of {count:.0e} rows", _tensors(count, zoo=True))
        yield Claim("toml", f"{count:.0e} steps", f'[data]\nseries = "lorenz63"\nsteps = {count}\n'.encode())
    # all of it is there, packed: a byte each in the file, eight once they are numbers
    yield Claim("npz", "1e9 flags in 1 MB", _zipped(_npy((2**20, 2**10), "|b1"), zeros=2**30))
    yield Claim("npz", "a name twice", _zipped(_npy((2, 2), "<f8") + bytes(32), names=("x.npy", "x.npy")))
    yield Claim("npz", "a name outside", _zipped(_npy((2, 2), "<f8") + bytes(31), names=("../../x.npy",)))
    yield Claim("csv", "an endless cell", b"x,y\n1," + b"9" * 2_000_000)
    yield Claim("csv", "100,000 columns", b",".join([b"1"] * 100_000) + b"\n")
    yield Claim("csv", "an open quote", b'x,y\n"' + b"1,2\n" * 500_000)
    for reader, mark in (("txt", b" "), ("tsv", b"\t")):
        yield Claim(reader, "an endless cell", b"x" + mark + b"y\n1" + mark + b"9" * 5_000_000)
        yield Claim(reader, "100,000 columns", mark.join([b"1"] * 100_000) + b"\n")
        yield Claim(reader, "a million remarks", b"# no numbers\n" * 1_000_000)
    for size in (2**28, 2**32 - 8):
        for packed in (True, False):
            kind = "packed" if packed else "plain"
            yield Claim("mat", f"{size:.0e} bytes in a small array, {kind}", _mat((6, 2), size, packed))
            yield Claim("mat", f"{size:.0e} bytes, {kind}", _mat((size // 16, 2), size, packed))
    yield Claim("mat", "an array of 2^61 numbers", _mat((2**31 - 1, 2**30), 2**32 - 8, packed=True))
    yield Claim("mat", "10^5 arrays", _mat((1, 1), 8, packed=False, times=10**5))
    for field, words in ((236, "99999999 records"), (252, "9999 channels"), (904, "16777216 samples")):
        yield Claim("edf", words, _edf(field, words.split()[0]))
    yield Claim("parquet", "1e12 rows in the footer", _parquet())
    yield Claim("safetensors", "a header of 2^60 bytes", (2**60).to_bytes(8, "little") + b"{}" * 40)
    yield Claim("toml", "50,000 brackets", b"a = " + b"[" * 50_000)
    yield Claim("toml", "a number of 10^6 digits", b"seed = " + b"9" * 1_000_000)


def _npy(shape: tuple[int, ...], kind: str) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_2_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def _zipped(npy: bytes, names: tuple[str, ...] = ("x.npy",), zeros: int = 0) -> bytes:
    """Return an archive of ``npy`` under each of ``names``, with ``zeros`` behind it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        for name in names:
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(npy)
                for _ in range(zeros // 2**20):
                    stream.write(bytes(2**20))
    return buffer.getvalue()


def _mat(shape: tuple[int, int], claimed: int, packed: bool, times: int = 1) -> bytes:
    """Return a file of arrays of this shape whose numbers claim so many bytes, of which there are eight."""
    body = struct.pack("<4I", 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, *shape)
    body += struct.pack("<HH4s", 1, 1, b"x") + struct.pack("<II8x", 9, claimed)
    element = struct.pack("<II", 14, len(body)) + body
    if packed:
        squeezed = zlib.compress(element)
        element = struct.pack("<II", 15, len(squeezed)) + squeezed
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + element * times


def _edf(field: int, words: str) -> bytes:
    """Return a recording in whose header a field says something else."""
    data = bytearray(formats()["edf"].seeds[0])
    width = 4 if field == 252 else 8
    data[field : field + width] = words[:width].ljust(width).encode()
    return bytes(data)


def _tensors(rows: int, zoo: bool = False) -> bytes:
    """Return a checkpoint, or a zoo, whose header claims that many rows."""
    data = checkpoint_bytes(palrnn.initial_alrnn(3, 2, 1, seed=1))
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size].replace(b'"shape":[3,3]', b'"shape":[%d,3]' % rows)
    if zoo:
        header = header.replace(b"palrnn-checkpoint", b"palrnn-zoo")
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def _parquet() -> bytes:
    """Return a file whose footer, changed in place, claims other numbers of rows than it has."""
    data = bytearray(formats()["parquet"].seeds[0])
    size = int.from_bytes(data[-8:-4], "little")
    footer = slice(len(data) - 8 - size, len(data) - 8)
    # the count of rows, 12, is a zigzag varint of one byte: 24; a larger one of the same length
    data[footer] = bytes(data[footer]).replace(bytes([24]), bytes([126]))
    return bytes(data)


def readers() -> dict[str, tuple[str, Callable[[Path], Any], tuple[type[Exception], ...]]]:
    """Return, by name, the suffix of a reader's files, the reader, and the errors that may come out."""
    known = {name: (kind.suffix, kind.read, kind.errors) for name, kind in formats().items()}
    return known | {"zoo": (".safetensors", palrnn.zoo_models, (palrnn.CheckpointError,))}


def peak() -> float:
    """Return the most memory that this process has held, in MB; a forked one begins with what it has."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def outcome(claim: Claim, folder: Path) -> dict[str, Any]:
    """Read a file in a forked process; return what it said, by how much its memory grew, and its time."""
    suffix, read, errors = readers()[claim.reader]
    file = folder / f"claim{suffix}"
    file.write_bytes(claim.data)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        limit_memory(2.0)
        before, begun = peak(), time.process_time()  # other programs may want the processor, too
        try:
            read(file)
            said = "read"
        except errors as error:
            said = "refused" if len(str(error).splitlines()) == 1 else f"not one line: {error}"[:200]
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"[:200]
        seen = {"said": said, "megabytes": peak() - before, "seconds": time.process_time() - begun}
        os.write(theirs, json.dumps(seen).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        text = stream.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(text) if text else {"said": f"left with {code}", "megabytes": 0.0, "seconds": 0.0}


def tried(folder: Path) -> dict[str, Any]:
    """Read every file and return, for each reader, how many there were, and the largest peak and time."""
    for suffix, read, _ in readers().values():  # whatever reading imports is imported before it is measured
        good = next((kind.seeds[0] for kind in formats().values() if kind.suffix == suffix), b"")
        (folder / f"good{suffix}").write_bytes(good)
        if read is not palrnn.zoo_models:
            read(folder / f"good{suffix}")
    counts: dict[str, dict[str, float]] = {}
    faults = []
    for claim in claims():
        seen = outcome(claim, folder)
        row = counts.setdefault(claim.reader, {"files": 0, "refused": 0, "megabytes": 0.0, "seconds": 0.0})
        row["files"] += 1
        row["refused"] += seen["said"] == "refused"
        for name in ("megabytes", "seconds"):
            row[name] = round(max(row[name], seen[name]), 2)
        if seen["said"] not in ("read", "refused"):
            faults.append(f"{claim.reader}, {claim.words}: {seen['said']}")
        if seen["megabytes"] > _MOST_MEGABYTES or seen["seconds"] > _MOST_SECONDS:
            faults.append(
                f"{claim.reader}, {claim.words}: {seen['megabytes']:.0f} MB, {seen['seconds']:.1f} s"
            )
    return {"readers": counts, "faults": faults}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    print(json.dumps(tried(place)))
