"""What is handed out: the source distribution is the package and what builds it, and the wheel runs alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
from tiny_reconstruction import TINY

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources, in which whatever builds may write."""
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path_factory.mktemp("sources") / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("src", "tests", "docs", "examples"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, copy)
    shutil.copy(ROOT / "LICENSE", copy)
    return copy


def built(tree, what, out):
    """Build a `sdist` or a `wheel` with what is installed, without network; return the file."""
    out.mkdir(exist_ok=True)
    words = f"from setuptools.build_meta import build_{what}; build_{what}({str(out)!r})"
    subprocess.run([sys.executable, "-c", words], cwd=tree, check=True, capture_output=True)
    (file,) = out.iterdir()
    return file


def installed(wheel, folder):
    """Install a wheel into an environment that has nothing else; what it needs is seen from this one."""
    pytest.importorskip("pip")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    told = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", told], capture_output=True, text=True, check=True)
    quiet = ("-q", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile")
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", *quiet, str(wheel)]
    subprocess.run(words, check=True, capture_output=True)
    (Path(found.stdout.strip()) / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, scripts / ("palrnn.exe" if os.name == "nt" else "palrnn")


def said(*words, cwd):
    """Run a program that sees nothing of the sources; return what it printed."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_CACHE"))
    }
    clean["XDG_CACHE_HOME"] = str(cwd / ".cache")
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_runs_in_an_empty_folder_without_the_sources(tree, tmp_path):
    wheel = built(tree, "wheel", tmp_path / "out")
    python, palrnn = installed(wheel, tmp_path / "environment")
    empty = tmp_path / "empty"
    empty.mkdir()
    place = Path(said(python, "-c", "import palrnn; print(palrnn.__file__)", cwd=empty).strip())
    assert tmp_path / "environment" in place.parents
    assert f"palrnn-{said(palrnn, '--version', cwd=empty).split()[1]}-" in wheel.name
    assert "demo" in said(palrnn, "--help", cwd=empty)
    own = {path.relative_to(tree / "src") for path in (tree / "src" / "palrnn").rglob("*") if path.is_file()}
    own = {path for path in own if "__pycache__" not in path.parts}
    assert own <= {path.relative_to(place.parents[1]) for path in place.parent.rglob("*")}


@pytest.mark.slow
def test_the_demo_runs_from_a_wheel_that_the_source_distribution_builds(tree, tmp_path):
    with tarfile.open(built(tree, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (sources,) = (tmp_path / "unpacked").iterdir()
    _, palrnn = installed(built(sources, "wheel", tmp_path / "wheel"), tmp_path / "environment")
    empty = tmp_path / "empty"
    empty.mkdir()
    TINY.to_toml(empty / "tiny.toml")
    told = said(palrnn, "demo", "-o", "demo", "--updates", 200, "--config", "tiny.toml", cwd=empty)
    assert "report.html" in told
    assert (empty / "demo" / "report.html").stat().st_size > 10_000


def test_the_source_distribution_is_the_package_and_nothing_stray(tree, tmp_path):
    archive = built(tree, "sdist", tmp_path / "out")
    with tarfile.open(archive) as held:
        names = {name.partition("/")[2] for name in held.getnames() if held.getmember(name).isfile()}
    own = {str(path.relative_to(tree)) for path in tree.joinpath("src/palrnn").rglob("*") if path.is_file()}
    assert own <= names
    rest = {name for name in names - own if not name.startswith("src/palrnn.egg-info/")}
    assert rest == {
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "MANIFEST.in",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "setup.cfg",
    }
