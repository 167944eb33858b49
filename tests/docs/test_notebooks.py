"""Notebooks are kept with their outputs, run from top to bottom, and become pages."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import nbclient
import nbformat
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def kinds(cell):
    """Return the forms of what a cell shows, and nothing of what it says."""
    shown = [set(output.get("data", {})) or {output.output_type} for output in cell.outputs]
    return sorted("+".join(sorted(forms)) for forms in shown)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def book(path):
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_a_notebook_is_kept_executed_and_small(path, book):
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert path.stat().st_size < 300_000
    found = [kind for cell in cells for kind in kinds(cell)]
    assert "error" not in found
    assert sum("image/png" in kind for kind in found) >= 3
    assert sum("text/html" in kind for kind in found) >= 3


@pytest.mark.parametrize("updates", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_notebook_runs_and_shows_the_same_kinds_of_things(book, tmp_path, updates):
    before = [kinds(cell) for cell in book.cells if cell.cell_type == "code"]
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.source = cell.source.replace("updates=10_000", f"updates={updates}")
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=240, kernel_name="python3", resources=place).execute()
    assert [kinds(cell) for cell in book.cells if cell.cell_type == "code"] == before


@pytest.fixture
def extension():
    pytest.importorskip("myst_parser")
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "_ext" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_page_has_every_cell_and_every_output(extension, path, book):
    page = extension.markdown(json.loads(path.read_text()))
    for cell in book.cells:
        assert cell.source.strip() in page
    shown = [kind for cell in book.cells if cell.cell_type == "code" for kind in kinds(cell)]
    html = sum("text/html" in kind or "image/png" in kind for kind in shown)
    assert page.count("{raw} html") == html


def test_a_notebook_with_an_error_makes_no_page(extension):
    output = {"output_type": "error", "ename": "ValueError", "evalue": "x must be given", "traceback": []}
    cell = {"cell_type": "code", "source": ["1 / 0\n"], "outputs": [output]}
    with pytest.raises(ValueError, match="must not show an error, got ValueError"):
        extension.markdown({"cells": [cell]})
