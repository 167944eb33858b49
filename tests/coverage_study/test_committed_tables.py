"""The tables in results/coverage are what today's code makes of the records beside them."""

import shutil
from pathlib import Path

import pytest

from palrnn.coverage import coverage_study, update_page
from palrnn.coverage.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
KEPT, PAGE = ROOT / "results" / "coverage", ROOT / "docs" / "uncertainty.md"
TABLES = ("coverage.csv", "methods.csv", "forecasts.csv")


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    folder = tmp_path_factory.mktemp("again")
    for name in ("settings.toml", "palrnn.json", "records.zip"):
        shutil.copy(KEPT / name, folder)
    coverage_study(folder, workers=1, compute=False)
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_of_records_by_todays_rules(again, name):
    # one of which nothing is computed by these is not there, and its place on the page says so
    kept, made = (
        (folder / name).read_text() if (folder / name).is_file() else None for folder in (KEPT, again)
    )
    assert kept == made


def test_there_is_something_in_the_records(again):
    assert (again / "methods.csv").is_file()


def test_the_page_has_the_tables(again, tmp_path):
    page = tmp_path / "page.md"
    shutil.copy(PAGE, page)
    update_page(page, again)
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_what_is_kept_is_of_the_quick_scale():
    assert load_settings(KEPT / "settings.toml") == load_settings("quick")
