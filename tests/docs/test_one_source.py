"""Every number in README.md and in the documentation is that of the table or result that it comes from."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import palrnn
from palrnn.paper import fidelity_page
from palrnn.paper.presets import load_preset
from palrnn.paper.study import study_tasks

ROOT = Path(__file__).resolve().parents[2]
DOCS, PAPER = ROOT / "docs", ROOT / "results" / "paper"
SPEC = importlib.util.spec_from_file_location("refresh", DOCS / "refresh.py")
refresh = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(refresh)

README, TRAINING, BENCHMARKS = ROOT / "README.md", DOCS / "training.md", DOCS / "benchmarks.md"


def rows_of(name: str) -> list[dict[str, str]]:
    with open(PAPER / name, newline="") as file:
        return list(csv.DictReader(file))


def said(page: Path, pattern: str) -> tuple[str, ...]:
    """Return the numbers of a sentence; that it is gone is an error, too."""
    text = " ".join(page.read_text().split())
    found = re.search(pattern, text)
    assert found is not None, f"{page.name} no longer says: {pattern}"
    return found.groups()


@pytest.mark.parametrize(
    ("page", "name", "make"), refresh.PLACES, ids=[f"{page.stem}-{name}" for page, name, _ in refresh.PLACES]
)
def test_a_shared_table_is_that_of_the_page_that_owns_it(page, name, make):
    assert refresh.place(page.read_text(), name) == make(), "run python docs/refresh.py"


@pytest.mark.parametrize(
    ("owner", "old", "new", "make"),
    [
        ("benchmarks.md", "| 1.87 |", "| 2.87 |", "fast"),
        ("shallow.md", "| 9 of 10 |", "| 8 of 10 |", "worth"),
        ("how-to/inputs.md", "| 0.048 |", "| 0.998 |", "worth"),
        ("pictures/attractor.json", '"grade": "good"', '"grade": "fair"', "caption"),
    ],
)
def test_another_number_in_the_owner_is_seen(owner, old, new, make, tmp_path, monkeypatch):
    before = getattr(refresh, make)()
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "__pycache__"))
    page = tmp_path / "docs" / owner
    text = page.read_text()
    assert old in text
    page.write_text(text.replace(old, new, 1))
    monkeypatch.setattr(refresh, "DOCS", tmp_path / "docs")
    assert getattr(refresh, make)() != before


def test_the_field_is_the_summary_of_its_page(tmp_path, monkeypatch):
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "__pycache__"))
    monkeypatch.setattr(refresh, "DOCS", tmp_path / "docs")
    summary = "| series | palrnn |\n|---|---|\n| [ECG](how-to/own-data.md) | 1.2 |"
    (tmp_path / "docs" / "field.md").write_text(
        f"# Field\n\n<!-- summary -->\n\n{summary}\n\n<!-- end of summary -->\n\nmore\n"
    )
    assert refresh.field() == summary.replace("(how-to", "(docs/how-to")


def test_verdicts_on_the_paper_are_those_of_the_results():
    summary = json.loads((PAPER / "summary.json").read_text())
    verdicts = [claim["verdict"] for claim in summary["claims"]]
    counts = [verdicts.count(word) for word in ("agrees", "differs", "cannot be compared")]
    total, *rest = said(README, r"Of (\d+) statements and numbers (\d+) agree, (\d+) differ and (\d+) cannot")
    assert [int(total), *map(int, rest)] == [len(verdicts), *counts]
    page = said(DOCS / "fidelity.md", r"Of (\d+) claims: (\d+) agree, (\d+) differ, (\d+) cannot be compared")
    assert page == (total, *rest)


def test_the_page_of_claims_is_made_from_the_results():
    summary = json.loads((PAPER / "summary.json").read_text())
    notes = (PAPER / "notes.md").read_text()
    made = fidelity_page(summary, "results/paper", notes, "../results/paper/figures")
    assert (DOCS / "fidelity.md").read_text() == made


def test_the_size_of_the_studies():
    tasks = Counter()
    for row in rows_of("computation.csv"):
        if "wall" not in row["what"]:
            tasks[row["what"]] += int(row["count"])
    own = Counter(task.kind.name for task in study_tasks(load_preset("paper").of_paper))
    models, geometries, tuned, more, other = (
        int(number.replace(",", ""))
        for number in said(
            README,
            r"(\d+) models, (\d+) geometries, (\d+) tuning runs; "
            r"studies of our own add (\d+) models and ([\d,]+) geometries",
        )
    )
    assert (models, geometries) == (own["checkpoint"], own["geometry"])
    assert models + more == tasks["checkpoint"] + tasks["forced"]
    assert tasks["checkpoint"] == len(rows_of("checkpoints.csv"))
    assert geometries + other == sum(tasks[kind] for kind in ("geometry", "further", "truth", "spectra"))
    assert tuned == sum(row["configuration"] != "baseline" for row in rows_of("evidence.csv"))
    counted = said(ROOT / "results" / "README.md", r"`paper/` holds ([\d,]+) tasks, (\d+) models")
    assert [int(number.replace(",", "")) for number in counted] == [sum(tasks.values()), tasks["checkpoint"]]


def test_the_share_of_the_gates_in_what_is_missing():
    rows = [row for row in rows_of("gap.csv") if row["variant"] == "many samples"]
    gates, state = (
        np.array([float(row[f"trace_missing_{name}"]) for row in rows]) for name in ("switching", "state")
    )
    (models,) = said(README, r"less than half a percent of the missing.*?\(the median of (\d+) models\)")
    assert int(models) == len(rows)
    assert 0.0 < np.median(gates / (gates + state)) < 0.005


def test_the_floor_of_the_paper_on_the_page_of_tuning():
    values = [float(row["dstsp"]) for row in rows_of("floor.csv")]
    told = said(
        DOCS / "tuning.md", r"differ by ([\d.]+) in the median \(([\d.]+) to ([\d.]+) in 95 % of (\d+)"
    )
    assert told[:3] == tuple(f"{value:.2f}" for value in np.quantile(values, [0.5, 0.025, 0.975]))
    assert int(told[3]) == len(values)


def test_times_and_ratios_of_the_benchmarks_agree():
    for page in refresh.tables(BENCHMARKS):
        for unit in ("palrnn", "the products"):
            column = f"times {unit}"
            if column not in page[0]:
                continue
            one = next(float(row["ms"]) for row in page if float(row[column]) == 1)
            for row in page:
                # both are rounded: the time to three digits, the ratio to two or three
                assert float(row["ms"]) / one == pytest.approx(float(row[column]), rel=0.02), row
    passes = {
        row[""]: float(row["ms"]) for row in refresh.rows_with(BENCHMARKS, "", "ms", "times the products")
    }
    own = passes['palrnn, `target="paper"`']
    told = said(
        BENCHMARKS, r"filter is ([\d.]+) times as fast as the textbook filter in JAX and ([\d.]+) times"
    )
    peers = [value for name, value in passes.items() if name.startswith("JAX")]
    assert [float(ratio) for ratio in told] == pytest.approx([peer / own for peer in peers], rel=0.02)


def test_the_time_of_an_update_is_the_same_everywhere():
    found = {row[""]: float(row["ms"]) for row in refresh.rows_with(BENCHMARKS, "", "ms", "times palrnn")}
    products = next(ms for name, ms in found.items() if name.startswith("the same products"))
    told = said(TRAINING, r"takes ([\d.]+) ms on one core of an Intel Xeon.*?BLAS take ([\d.]+) ms")
    assert told == (f"{found['palrnn']:.2f}", f"{products:.2f}")
    # "half a minute" for 100,000 updates
    assert 15 < found["palrnn"] * 100_000 / 1000 < 45


def test_the_defaults_that_pages_name_are_the_defaults():
    config = palrnn.TrainConfig()
    own = DOCS / "how-to" / "own-data.md"
    units, gates, updates = said(TRAINING, r"M = (\d+) units, P = (\d+) gates,.*?([\d,]+) updates, of which")
    sizes = config.latent_dim, config.gated, config.updates
    assert (int(units), int(gates), int(updates.replace(",", ""))) == sizes
    rows = refresh.rows_with(TRAINING, "series", "settings", "alive from 10 of 10 starts")
    usual = [row for row in rows if row["settings"] == refresh.DEFAULTS.get(row["series"])]
    sentence = (
        r"With the default settings (\d+ of \d+) models of Lorenz-63 still move .*? and (\d+ of \d+) of data"
    )
    told = said(TRAINING, sentence)
    assert list(told) == [row["alive from 10 of 10 starts"] for row in usual]
    assert said(own, r"The default is (\d+), or the number") == (units,)
    assert said(own, r"Start at the default of (\d+)") == (gates,)
    assert said(own, r"\*\*Updates\.\*\* ([\d,]+) unless told") == (updates,)


def test_what_the_page_on_the_shallow_model_concludes_is_in_its_table():
    rows = {row["model"]: row for row in refresh.rows_with(DOCS / "shallow.md", "model", "D_stsp of each")}
    published = float(rows["published (Hess et al., 2023)"]["median"])
    words = {"seven": 7, "eight": 8, "nine": 9, "ten": 10}
    told = said(
        DOCS / "shallow.md",
        r"default settings (\w+) are below the published score, of the clipped ones (\w+)",
    )
    for form, word in zip(("shallow, defaults", "clipped, defaults"), told, strict=True):
        scores = [float(score) for score in rows[form]["D_stsp of each"].split(", ")]
        assert words[word] == sum(score < published for score in scores)
        assert f"{np.median(scores):.2f}" == rows[form]["median"]


def test_what_the_page_on_gaps_concludes_is_in_its_table():
    rows = refresh.rows_with(DOCS / "gaps.md", "learned", "forced", "D_stsp", "D_H", "MAE")
    every = {row["learned"]: row for row in rows if row["forced"] == "every step"}
    told = said(DOCS / "gaps.md", r"the medians differ by factors of ([\d.]+), ([\d.]+) and ([\d.]*\d)")
    for score, ratio in zip(("D_stsp", "D_H", "MAE"), told, strict=True):
        filled, seen = (
            float(every[how][score].partition(" ")[0]) for how in ("from interpolated values", "from gaps")
        )
        assert filled / seen == pytest.approx(float(ratio), rel=0.01)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == palrnn.__version__
    assert f"\nversion: {palrnn.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == palrnn.__version__


def test_two_commands_and_one_line_of_pip_are_on_the_first_page():
    lines = [line.strip() for line in README.read_text().splitlines() if line.startswith("    ")]
    assert lines[0] == "pip install palrnn"
    assert [line.partition("  ")[0] for line in lines[1:3]] == ["make demo", "make test"]


def test_old_names_are_gone_and_what_they_became_is_there():
    """docs/upgrading.md names modules and attributes; those of 0.2 exist, those of 0.1 do not."""
    text = (DOCS / "upgrading.md").read_text()
    for old in ("palrnn.facade", "palrnn.experiments", "palrnn.report.style"):
        assert old in text
        assert importlib.util.find_spec(old) is None
    for new in ("palrnn.runs", "palrnn.sweeps", "palrnn.paper", "palrnn.engine.style"):
        assert new in text
        assert importlib.util.find_spec(new) is not None
    for gone in ("Trajectory", "DivergenceWarning"):
        assert gone in text
        assert not hasattr(palrnn, gone)
    for name in ("record", "with_name", "diagnostics", "model"):
        assert hasattr(palrnn.Reconstruction, name) or name in palrnn.Reconstruction.__dataclass_fields__


def test_what_a_missing_zero_exponent_means_follows_from_the_flows():
    found = {
        file.stem.removesuffix("-default-0"): json.loads(file.read_text())
        for file in (ROOT / "results" / "field" / "flows").glob("*-default-0.json")
    }
    chaotic = {
        name: min(map(abs, each["exponents"])) / each["exponents"][0]
        for name, each in found.items()
        if each["alive"] and each["true_exponents"][0] > 0.01
    }
    worst = sorted(chaotic, key=lambda name: chaotic[name])[-3:]
    low, high, *names, least, most = said(
        TRAINING,
        r"lack the zero most \(by (\d+) to (\d+) % of the largest: (\w+), (\w+), (\w+)\) have a largest "
        r"exponent that is wrong by (\d+) to (\d+) %",
    )
    missing = [100 * chaotic[name] for name in worst]
    wrong = [100 * found[name]["exponent_error"] for name in worst]
    assert set(names) == set(worst)
    assert (int(low), int(high)) == (round(min(missing)), round(max(missing)))
    assert (int(least), int(most)) == (round(min(wrong)), round(max(wrong)))
    lacking, off = said(TRAINING, r"Thomas, which lacks the zero by (\d+) %, is wrong by (\d+) %")
    assert int(lacking) == round(100 * chaotic["Thomas"])
    assert int(off) == round(100 * found["Thomas"]["exponent_error"])
    score, floor = said(TRAINING, r"Lorenz84 with D_stsp ([\d.]+), where the floor is (\d+\.\d+)")
    model = found["Lorenz84"]
    assert (score, floor) == (f"{model['dstsp']:.2f}", f"{model['floor']:.2f}")


def coverage_rows(name: str) -> list[dict[str, str]]:
    with open(ROOT / "results" / "coverage" / name, newline="") as file:
        return list(csv.DictReader(file))


def test_recommended_intervals_of_parameters_cover_what_their_page_says():
    rows = [row for row in coverage_rows("methods.csv") if row["rows"] == "5000"]
    found = [row for row in rows if row["method"] == "likelihood"]
    assert len(found) == 16
    assert {int(row["datasets"]) for row in found} == {100}
    words = r"90 % intervals cover (\d+) to (\d+) % of what is asked and its 50 % intervals (\d+) to (\d+) %"
    wide = [100 * float(row["covered 0.9"]) for row in found]
    half = [100 * float(row["covered 0.5"]) for row in found]
    shown = [f"{value:.0f}" for value in (min(wide), max(wide), min(half), max(half))]
    assert list(said(DOCS / "uncertainty.md", words)) == shown
    longer = [
        row
        for row in coverage_rows("methods.csv")
        if row["rows"] == "20000" and row["method"] == "likelihood"
    ]
    assert [int(row["datasets"]) for row in longer] == [100] * 4
    shares = [100 * float(row["covered 0.9"]) for row in longer]
    low, high = said(
        DOCS / "uncertainty.md", r"of 20,000 rows (\d+) to (\d+) %, in four settings of a hundred"
    )
    assert (low, high) == (f"{min(shares):.0f}", f"{max(shares):.0f}")
    # 90 of 100 data sets, within three errors of so many
    assert min(wide) > 90 - 3 * 3
    assert max(wide) < 90 + 3 * 3
