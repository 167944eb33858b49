"""Compiled kernels survive damaged files, folders that take no files, and one another's copies."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

from palrnn.engine import kernel_cache
from palrnn.engine.kernel import kernel

_KERNELS = """
import math
from palrnn.engine.kernel import kernel
SIZE = 2.0

@kernel
def inner(x):
    total = 0.0
{body}
    return total * SIZE

@kernel
def outer(x):
    return inner(x) + inner(x + 1.0)
"""


def _body(loops):
    """Many loops; the compiler puts a short function into its callers, and lets a long one stand."""
    return "\n".join(
        f"    for i in range(int(x) + {k}):\n        total += math.sqrt(x + i * {k}.5) / (1.0 + i + {k})"
        for k in range(loops)
    )


_RUN = """
import sys, warnings
from palrnn.engine.kernel import on_compile
import rooms
on_compile(lambda: print("compiling"))
print(repr(rooms.outer(3.0)))
"""


@pytest.fixture
def package(tmp_path):
    """A package with two kernels, of which one calls the other."""
    (tmp_path / "rooms.py").write_text(_KERNELS.format(body=_body(3)))
    return tmp_path


def run(package, code=_RUN, **changes):
    """Run code beside the package; return what it printed and what it said on standard error."""
    limit = changes.pop("limit", None)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=package,
        env=environment | changes,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit,) * 2),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.strip()


def kernels(package):
    return sorted((package / "__pycache__").glob("*.kernel"))


def _expected():
    def inner(x):
        steps = ((k, i) for k in range(3) for i in range(int(x) + k))
        return 2.0 * sum(np.sqrt(x + i * (k + 0.5)) / (1.0 + i + k) for k, i in steps)

    return inner(3.0) + inner(4.0)


DAMAGES = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "flipped early": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "flipped late": lambda data: data[:-1000] + bytes([data[-1000] ^ 64]) + data[-999:],
    "zeros": lambda data: bytes(len(data)),
    "another pickle": lambda data: b"\x80\x04." * 100,
    "longer": lambda data: data + b"x",
}
_RUN_ALL = """
import importlib, pathlib, sys
from palrnn.engine.kernel import on_compile
told = []
for folder in sorted(pathlib.Path().glob("damage*")):
    # it tells once in a process
    on_compile(lambda: told.append(folder))
    rooms = importlib.import_module(f"{folder.name}.rooms")
    value = rooms.outer(3.0)
    print(folder in told, repr(value))
"""


def test_a_damaged_file_is_compiled_again_and_replaced(tmp_path):
    packages = [tmp_path / f"damage{k}" for k in range(len(DAMAGES))]
    for package in packages:
        package.mkdir()
        (package / "rooms.py").write_text(_KERNELS.format(body=_body(3)))
    first, _ = run(tmp_path, _RUN_ALL)
    assert first[::2] == ["True"] * len(DAMAGES)
    # sums of some twenty terms
    assert [float(value) for value in first[1::2]] == pytest.approx([_expected()] * len(DAMAGES), rel=1e-13)
    for package, damage in zip(packages, DAMAGES.values(), strict=True):
        assert len(kernels(package)) == 2
        for file in kernels(package):
            file.write_bytes(damage(file.read_bytes()))
    assert run(tmp_path, _RUN_ALL) == (first, "")
    again, said = run(tmp_path, _RUN_ALL)
    assert (again[::2], again[1::2], said) == (["False"] * len(DAMAGES), first[1::2], "")


def test_numbas_own_damaged_files_do_no_harm(package):
    (package / "__pycache__").mkdir()
    for suffix in ("nbi", "1.nbc"):
        (package / "__pycache__" / f"rooms.outer-18.py311.{suffix}").write_bytes(b"\x80garbage")
    assert run(package)[1] == ""


def test_a_package_that_cannot_be_written_to_uses_the_users_folder(package, tmp_path):
    (package / "__pycache__").write_text("a file, so that nothing can be put below")
    home = tmp_path / "cache"
    home.mkdir()
    first, said = run(package, XDG_CACHE_HOME=str(home))
    assert (first[0], said) == ("compiling", "")
    assert run(package, XDG_CACHE_HOME=str(home)) == ([first[1]], "")
    assert list(home.rglob("*.kernel"))


def test_without_a_home_a_private_folder_is_used(package, tmp_path):
    (package / "__pycache__").write_text("")
    (tmp_path / "temporary").mkdir()
    nowhere = {"XDG_CACHE_HOME": "/proc/nowhere", "HOME": "/proc/nowhere"}
    nowhere |= {"TMPDIR": str(tmp_path / "temporary"), "NUMBA_CACHE_DIR": "/proc/nowhere"}
    first, said = run(package, **nowhere)
    assert (first[0], said) == ("compiling", "")
    assert run(package, **nowhere) == ([first[1]], "")
    folder = tmp_path / "temporary" / f"palrnn-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_where_nothing_can_be_written_kernels_stay_in_memory_and_one_line_says_so(package):
    # no file may have more than 4 kB, as on a disk without room
    out, said = run(package, limit=4096)
    assert out[0] == "compiling"
    assert float(out[1]) == pytest.approx(_expected(), rel=1e-13)
    assert said.count("compiled kernels cannot be kept") == 1
    assert kernels(package) == []
    assert list(package.rglob("*.tmp")) == []


def test_a_kernel_from_the_cache_rounds_like_one_just_compiled(package):
    # Numba's own way gives another last digit here: the cached `outer` runs with a copy of `inner` that was
    # optimised once more, and the one just compiled with the original
    (package / "rooms.py").write_text(_KERNELS.format(body=_body(40)))
    compiled, _ = run(package)
    cached, _ = run(package)
    assert compiled == ["compiling", *cached]


def test_code_does_not_depend_on_what_was_cached_before(package, tmp_path):
    code = """
        import hashlib, re, rooms
        rooms.outer(3.0)
        (compiled,) = rooms.outer.overloads.values()
        code = re.sub(r"_ZN[\\w$.]+", "name", compiled.library.get_asm_str())
        code = re.sub(r'"[^"\\n]*"|\\.size.*', "", code)  # texts hold names and addresses
        assert "sqrt" in code
        print(hashlib.sha256(code.encode()).hexdigest())
    """
    together, _ = run(package, code, NUMBA_CACHE_DIR=str(tmp_path / "one"), PYTHONHASHSEED="1")
    run(package, "import rooms; rooms.inner(3.0)", NUMBA_CACHE_DIR=str(tmp_path / "two"), PYTHONHASHSEED="2")
    # here `inner` comes from the cache
    apart, _ = run(package, code, NUMBA_CACHE_DIR=str(tmp_path / "two"), PYTHONHASHSEED="3")
    assert together == apart


@pytest.mark.parametrize("trap", ["link", "open to all", "a file"])
def test_a_folder_that_is_not_private_is_not_trusted(tmp_path, trap):
    place = tmp_path / f"palrnn-{os.getuid()}"
    if trap == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "theirs")
    elif trap == "open to all":
        place.mkdir()
        place.chmod(0o777)
    else:
        place.write_text("")
    with pytest.raises(PermissionError, match="is not private"):
        kernel_cache._private(tmp_path)


def test_the_same_source_with_another_closure_has_another_file(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(tmp_path))

    def scaled(factor):
        @kernel
        def times(x):
            return factor * x

        return times

    assert [scaled(factor)(2.0) for factor in (3.0, 5.0, 3.0)] == [6.0, 10.0, 6.0]
    assert len(list(Path(tmp_path).rglob("*times*.kernel"))) == 2


def test_places_without_any_folder_for_temporary_files(monkeypatch, tmp_path):
    def none():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert kernel_cache._folders.__wrapped__(tmp_path, "")[0] == tmp_path / "__pycache__"


def test_flush_removes_the_files_of_one_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(tmp_path))

    @kernel
    def one(x):
        return x + 1.0

    one(1.0)
    assert list(tmp_path.rglob("*one*.kernel"))
    one._cache.flush()
    assert not list(tmp_path.rglob("*one*.kernel"))
