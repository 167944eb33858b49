"""What the kernel decorator promises: NaN is noticed, caches are never stale, BLAS has one thread."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import palrnn.engine.kernel as home
import palrnn.model.kernels.alrnn
from palrnn.engine.kernel import _import_statements, kernel, pin_blas, source_stamp


@kernel
def _sees_nan(x):
    return np.isnan(x), np.isinf(x), not abs(x) <= 1.0


@kernel
def _quotient(x, y):
    return x / y


def test_kernels_notice_nan_and_infinity():
    assert _sees_nan(np.nan) == (True, False, True)
    assert _sees_nan(np.inf) == (False, True, True)
    assert _sees_nan(0.5) == (False, False, False)


def test_division_by_zero_is_infinite_and_not_an_error():
    assert _quotient(1.0, 0.0) == np.inf


def _python(code: str, folder, **environment: str) -> str:
    # kernels beside their sources, where these tests look for them
    usual = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=folder,
        # a file that changes twice within a second must not be taken for the one compiled before
        env=usual | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    """A package whose kernel `outer` calls `inner` of another file, and uses a constant of a third."""
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "size.py").write_text("SIZE = 2.0\n")
    (folder / "inner.py").write_text(
        "from palrnn.engine.kernel import kernel\n\n\n@kernel\ndef inner(x):\n    return x + 1.0\n"
    )
    (folder / "outer.py").write_text(
        "from palrnn.engine.kernel import kernel\n"
        "from rooms.inner import inner\nfrom rooms.size import SIZE\n"
        "@kernel\ndef outer(x):\n    return inner(x) * SIZE\n"
    )
    return tmp_path


_RUN = """
    from palrnn.engine.kernel import on_compile
    from rooms.outer import outer
    on_compile(lambda: print("compiling"))
    print(outer(1.0))
"""


def test_a_kernel_is_compiled_once_and_says_so(package):
    assert _python(_RUN, package) == "compiling\n4.0"
    assert _python(_RUN, package) == "4.0"


@pytest.mark.parametrize(
    ("file", "old", "new", "value"), [("inner", "1.0", "5.0", "12.0"), ("size", "2.0", "3.0", "6.0")]
)
def test_a_change_in_a_file_that_a_kernel_imports_renews_it(package, file, old, new, value):
    assert _python(_RUN, package) == "compiling\n4.0"
    path = package / "rooms" / f"{file}.py"
    path.write_text(path.read_text().replace(old, new))
    assert _python(_RUN, package) == f"compiling\n{value}"


def test_a_change_elsewhere_renews_nothing(package):
    assert _python(_RUN, package) == "compiling\n4.0"
    (package / "rooms" / "__init__.py").write_text("VERSION = 2\n")
    assert _python(_RUN, package) == "4.0"


def test_no_import_of_the_package_is_overlooked():
    for file in Path(palrnn.__file__).parent.rglob("*.py"):
        found: dict[str, set[str]] = {}
        for module, names in _import_statements(file.read_bytes()):
            found[module] = found.get(module, set()) | set(names)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= found.keys(), file
            elif isinstance(node, ast.ImportFrom) and node.names[0].name != "*":
                assert {alias.name for alias in node.names} <= found[node.module], file


def test_a_change_of_the_compiler_flags_renews_every_kernel_of_the_package(monkeypatch, tmp_path):
    source_stamp.cache_clear()
    before = source_stamp(palrnn.model.kernels.alrnn.__name__)
    changed = tmp_path / "kernel.py"
    changed.write_text("# other flags\n")
    monkeypatch.setattr(home, "__file__", str(changed))
    source_stamp.cache_clear()
    assert source_stamp(palrnn.model.kernels.alrnn.__name__) != before
    source_stamp.cache_clear()


def test_what_a_kernel_calls_is_compiled_to_be_copied_and_still_runs_by_itself(package):
    said = _python(
        """
        from rooms.inner import inner
        from rooms.outer import outer
        print(outer(1.0), len(outer.overloads), len(inner.overloads))
        print(inner(1.0), len(inner.overloads))
        """,
        package,
    )
    assert said.split() == ["4.0", "1", "0", "2.0", "1"]
    files = [file.name for file in package.rglob("*.kernel")]
    assert sorted(name.partition(".cpython")[0] for name in files) == [
        "inner.inner",
        "inner.inner.part",
        "outer.outer",
    ]
    assert _python("from rooms.outer import outer; print(outer(2.0))", package) == "6.0"


def test_blas_has_one_thread_whichever_library_is_loaded_when():
    # NumPy and SciPy bring one BLAS each, and compiled products run on SciPy's
    threads = _python(
        """
        from palrnn.engine.kernel import pin_blas
        pin_blas()
        import numpy, scipy.linalg, scipy.sparse.linalg
        from threadpoolctl import threadpool_info
        blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
        print(len({library["filepath"] for library in blas}), {library["num_threads"] for library in blas})
        """,
        ".",
        OPENBLAS_NUM_THREADS="2",
    )
    count, threads = threads.split(maxsplit=1)
    assert int(count) >= 1
    assert threads == "{1}"


def test_pinning_from_many_threads_at_once_is_harmless():
    threads = [threading.Thread(target=pin_blas) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pin_blas()
    assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {1}
