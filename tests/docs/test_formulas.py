"""The table from the paper's labels to functions and kernels is true, and complete."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import palrnn

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mathematics.md"
LABELS = re.compile(r"\beqs\. (\w[\w:-]*\w(?:(?:,| and) \w[\w:-]*\w)*)|\b(?:eq|Alg|Sec)\. (\w[\w:-]*\w)")


class Formula(NamedTuple):
    label: str
    public: list[str]
    kernels: list[str]


def formulas() -> list[Formula]:
    rows = re.findall(
        r"^\| ((?:eq|Alg|Sec)\. \S+) \|[^\n]*?\| ((?:`[^`]+`,? ?)+)\| ?([^|\n]*)\|$", PAGE.read_text(), re.M
    )
    return [
        Formula(label.split(" ")[1], re.findall("`([^`]+)`", public), re.findall("`([^`]+)`", kernels))
        for label, public, kernels in rows
    ]


def resolved(name: str) -> Any:
    """Return what a dotted name below `palrnn` means; a kernel as the function that was compiled."""
    parts = name.split(".")
    found: Any = palrnn
    for k, part in enumerate(parts):
        if not hasattr(found, part):
            importlib.import_module(".".join(["palrnn", *parts[: k + 1]]))
        found = getattr(found, part)
    return getattr(found, "py_func", found)


def labels_in(text: str) -> set[str]:
    """Return the labels that ``text`` names, without the sections in front of them."""
    found = [one for many, single in LABELS.findall(text) for one in re.split(", | and ", many or single)]
    return {label.rpartition(":")[2] for label in found}


@pytest.mark.parametrize("formula", formulas(), ids=lambda formula: formula.label)
def test_functions_exist_and_carry_the_label(formula):
    for name in formula.public:
        assert callable(resolved(name)), name
    carriers = [resolved(name) for name in formula.kernels] or [
        inspect.getmodule(resolved(name)) for name in formula.public
    ]
    texts = [inspect.getsource(carrier) for carrier in carriers]
    found = [formula.label in labels_in(text) for text in texts]
    # each kernel says what it computes; of the functions without one, the file of the first at least
    assert all(found) if formula.kernels else found[0], formula


def test_every_label_in_the_code_has_a_row():
    known = {formula.label for formula in formulas()}
    cited = {
        label
        for path in (ROOT / "src").rglob("*.py")
        for doc in re.findall(r'"""(.*?)"""', path.read_text(), re.S)
        for label in labels_in(doc)
    }
    assert cited - known == set()
    assert len(known) > 20
