"""What is handed out: the source distribution is the package and what builds it, and no stray files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_source_distribution_is_the_package_and_nothing_stray(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    tree, out = tmp_path / "tree", tmp_path / "out"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("src", "tests", "docs", "examples"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, tree)
    shutil.copy(ROOT / "LICENSE", tree)
    out.mkdir()
    words = f"from setuptools.build_meta import build_sdist; build_sdist({str(out)!r})"
    subprocess.run([sys.executable, "-c", words], cwd=tree, check=True, capture_output=True)
    (archive,) = out.glob("*.tar.gz")
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
