"""A command writes to folders and files of its own only."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from palrnn.engine.folders import MARKER, check_file, check_folder, folder_kind, writable_folder
from palrnn.engine.locks import FolderInUseError, folder_lock


def test_a_new_and_an_empty_folder_are_marked_and_welcome_again(tmp_path):
    for folder in (tmp_path / "new" / "er", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        for _ in range(2):
            with writable_folder(folder, "run", "testing") as path:
                (path / "model").write_text("x")
        assert folder_kind(folder) == "run"
        assert sorted(os.listdir(folder)) == ["model", MARKER]


def test_what_a_killed_writer_left_does_not_make_a_folder_foreign(tmp_path):
    (tmp_path / ".lock").write_text("")
    (tmp_path / f".{MARKER}.0123456789ab.tmp").write_text("{")
    check_folder(tmp_path, "run")


def test_a_folder_with_files_of_others_is_refused_and_untouched(tmp_path):
    (tmp_path / "history.csv").write_text("mine")
    words = r"holds files that are not of a run \(history\.csv\)"
    with pytest.raises(ValueError, match=words), writable_folder(tmp_path, "run", "testing"):
        pass
    assert os.listdir(tmp_path) == ["history.csv"]


def test_a_folder_of_another_kind_is_refused(tmp_path):
    with writable_folder(tmp_path, "run", "testing"):
        pass
    with pytest.raises(ValueError, match="is the folder of a run, not of a sweep"):
        check_folder(tmp_path, "sweep")


def test_a_folder_held_by_another_writer_is_refused_before_it_is_marked(tmp_path):
    with folder_lock(tmp_path, "other"):
        seen = []

        def attempt():
            try:
                with writable_folder(tmp_path, "run", "testing"):
                    pass
            except FolderInUseError as error:
                seen.append(error)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        assert len(seen) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["file", "link"])
def test_what_is_not_a_folder_is_refused(tmp_path, name):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=rf"{name}: (exists and is not a folder|a link to nowhere)"):
        check_folder(tmp_path / name, "run")


def test_a_folder_needs_a_name(tmp_path):
    with pytest.raises(ValueError, match="output must have a name, got ''"):
        check_folder("", "run")
    with pytest.raises(ValueError, match="output must have a name, got ''"):
        check_file("")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": 3, "format": 1}', '{"kind": "a b", "format": 1}', "[" * 9000]
)
def test_a_marker_that_makes_no_sense_is_named(tmp_path, text):
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(ValueError, match=r"palrnn\.json: not the marker"):
        check_folder(tmp_path, "run")


def test_a_newer_marker_is_left_to_a_newer_palrnn(tmp_path):
    (tmp_path / MARKER).write_text(json.dumps({"kind": "run", "format": 2}))
    with pytest.raises(ValueError, match="written by a newer palrnn"):
        check_folder(tmp_path, "run")


def test_results_of_0_1_are_recognised_without_a_marker():
    assert folder_kind(Path(__file__).parents[2] / "results" / "paper") == "sweep"


def test_a_file_is_replaced_only_if_it_bears_the_mark(tmp_path):
    page = tmp_path / "page.html"
    assert check_file(page, b"palrnn report") == page
    page.write_text("<!-- palrnn report -->")
    check_file(page, b"palrnn report")
    with pytest.raises(ValueError, match=r"page\.html: exists and is not from this command"):
        check_file(page)
    page.write_text("something else")
    with pytest.raises(ValueError, match=r"page\.html: exists and is not from this command"):
        check_file(page, b"palrnn report")


def test_an_input_is_never_the_output(tmp_path):
    (tmp_path / "x.npy").write_text("palrnn")
    (tmp_path / "alias.npy").symlink_to("x.npy")
    for name in ("x.npy", "alias.npy"):
        with pytest.raises(ValueError, match="is what the command reads"):
            check_file(tmp_path / name, b"palrnn", inputs=[tmp_path / "x.npy"])
