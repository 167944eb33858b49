"""A full disk, a folder that cannot be written, a folder that vanishes: one line each, and nothing lost.

Files are limited by the kernel (RLIMIT_FSIZE gives EFBIG, as a full disk gives ENOSPC), and where mounting is
allowed, by a file system of half a megabyte that really runs full, and one that is read-only.

    python -m torture.faults FOLDER      prints what it saw as JSON
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from torture.kills import COMMANDS, half_written

PALRNN = [sys.executable, "-m", "palrnn.cli.main"]
# run with the words of another program, which it becomes once the limit is set
_LIMITED = """import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
# Python would keep compiled sources that are cut off as well, for everybody
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.execv(sys.argv[1], sys.argv[1:])"""


def tried(folder: Path, commands: tuple[str, ...] = tuple(COMMANDS)) -> dict[str, Any]:
    """Try every fault on every command and return the number of tries, the faults of ours, what was tried."""
    faults, count, kinds = [], 0, []
    for kind, fault in KINDS.items():
        done = 0
        for name in commands:
            place = folder / kind.replace(" ", "-") / name
            place.mkdir(parents=True)
            found = fault(name, place)
            if found is not None:
                done += 1
                faults += [f"{kind}, {name}: {words}" for words in found]
        count += done
        if done:
            kinds.append(kind)
    return {"tries": count, "kinds": kinds, "faults": faults}


def _file_limit(name: str, folder: Path) -> list[str]:
    """No file may grow beyond 600 bytes, so that every result is cut off while it is written."""
    command = COMMANDS[name]
    command.prepare(folder)
    before = _whole_files(folder)

    return _judged(command.words(folder), folder, before, start=[sys.executable, "-c", _LIMITED])


def _full_disk(name: str, folder: Path) -> list[str] | None:
    """The output is on a file system with no room."""
    return _mounted(name, folder, "size=64k,nr_inodes=200", fill=True)


def _read_only(name: str, folder: Path) -> list[str] | None:
    """The output is on a file system that is mounted read-only."""
    return _mounted(name, folder, "size=8m,ro", fill=False)


def _mounted(name: str, folder: Path, options: str, *, fill: bool) -> list[str] | None:
    command, disk = COMMANDS[name], folder / "disk"
    command.prepare(folder)
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        return None
    try:
        if fill:
            (disk / "ballast").write_bytes(b"x" * 60_000)
        words = _moved(command.words(folder), folder, disk)
        before = _whole_files(disk)
        return _judged(words, disk, before)
    finally:
        subprocess.run(["umount", "-l", str(disk)], capture_output=True, check=False)


def _moved(words: list[str], folder: Path, disk: Path) -> list[str]:
    """Return the command with its output on the disk."""
    at = words.index("-o") + 1
    return [*words[:at], str(disk / Path(words[at]).relative_to(folder)), *words[at + 1 :]]


def _below_a_file(name: str, folder: Path) -> list[str]:
    """The output is in a folder that is a file."""
    command = COMMANDS[name]
    command.prepare(folder)
    (folder / "file").write_text("here first")
    words = command.words(folder)
    at = words.index("-o") + 1
    words[at] = str(folder / "file" / "below")
    return _judged(words, folder, _whole_files(folder))


def _vanished(name: str, folder: Path) -> list[str]:
    """The output folder is removed while the command runs: an error in one line, or it was done already."""
    command = COMMANDS[name]
    command.prepare(folder)
    words = command.words(folder)
    out = Path(words[words.index("-o") + 1])
    process = subprocess.Popen([*PALRNN, *words], stderr=subprocess.PIPE, text=True)
    stop = threading.Event()

    def remove() -> None:
        while not stop.wait(0.02):
            # the command writes meanwhile: what cannot be removed now goes the next time
            shutil.rmtree(out, ignore_errors=True)
            with suppress(OSError):
                out.unlink()

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        _, text = process.communicate(timeout=120)
    finally:
        faults = [] if remover.is_alive() else ["the thread that removes the folder died"]
        stop.set()
        remover.join()
    return faults + _one_line(process.returncode, text, may_succeed=True)


def _judged(words: list[str], folder: Path, before: dict[str, bytes], start: Sequence[str] = ()) -> list[str]:
    command = [*start, *PALRNN, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    found = _one_line(done.returncode, done.stderr)
    after = _whole_files(folder)
    found += [f"{name} was harmed" for name, data in before.items() if after.get(name) != data]
    return found + half_written(folder)


def _one_line(code: int, text: str, *, may_succeed: bool = False) -> list[str]:
    text = text.strip()
    if may_succeed and code == 0:
        return []
    if code != 1:
        return [f"left with {code}: {text[-300:]}"]
    if len(text.splitlines()) != 1 or "--debug shows where" in text:
        return [f"not one line that was foreseen: {text[-400:]}"]
    return []


def _whole_files(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if os.access(path, os.R_OK)}


KINDS: dict[str, Callable[[str, Path], list[str] | None]] = {
    "files of at most 600 bytes": _file_limit,
    "a full disk": _full_disk,
    "a read-only disk": _read_only,
    "a folder that is a file": _below_a_file,
    "a folder that vanishes": _vanished,
}


if __name__ == "__main__":
    begun = time.monotonic()
    seen = tried(Path(sys.argv[1]), tuple(sys.argv[2:]) or tuple(COMMANDS))
    print(json.dumps(seen | {"seconds": round(time.monotonic() - begun, 1)}))
