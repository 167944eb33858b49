"""The archive of a sweep: the same results give the same bytes, and nothing in it is believed unseen."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

import pytest
from oracles.rehearsal import SUM, chain

from palrnn.engine.progress import quiet
from palrnn.sweeps import Kind, LocalEngine, Store, Task, archive_contents, run, sweep_status, write_archive
from palrnn.sweeps.archive import RECORDS, restore_times

TASKS = chain(3)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "run"
    assert run(TASKS, Store(folder), LocalEngine(1), progress=quiet).complete
    write_archive(Store(folder), TASKS)
    return folder


def clone(sweep: Path, folder: Path) -> Store:
    """A folder with the archive alone."""
    folder.mkdir()
    shutil.copy(sweep / RECORDS, folder)
    return Store(folder)


def change(store: Store, name: str, data: bytes) -> None:
    """Put other content under ``name`` into the archive."""
    with zipfile.ZipFile(store.folder / RECORDS) as file:
        contents = {entry: file.read(entry) for entry in file.namelist()} | {name: data}
    with zipfile.ZipFile(store.folder / RECORDS, "w", zipfile.ZIP_DEFLATED) as file:
        for entry, content in contents.items():
            file.writestr(entry, content)


def test_the_archive_makes_another_folder_whole_and_comes_out_the_same_again(sweep, tmp_path) -> None:
    store = clone(sweep, tmp_path / "clone")
    found = dict(archive_contents(store, TASKS))
    assert set(found) == set(TASKS)
    status = sweep_status(store, TASKS, found)
    assert (status["done"], status["total"], status["alive"]) == (4, 4, False)
    for task, data in found.items():
        store.put(task, data)
    restore_times(store)
    assert list(archive_contents(store, TASKS)) == []
    write_archive(store, TASKS)
    assert (store.folder / RECORDS).read_bytes() == (sweep / RECORDS).read_bytes()


def test_a_kind_can_stay_out(sweep) -> None:
    large = Kind("sum", SUM.function, archived=False)
    left_out = [Task(large, task.settings, task.needs) for task in TASKS]
    assert [task.hash for task in left_out] == [task.hash for task in TASKS]
    kept = (sweep / RECORDS).read_bytes()
    write_archive(Store(sweep), left_out)
    with zipfile.ZipFile(sweep / RECORDS) as file:
        assert file.namelist() == ["timings.jsonl", "sessions.jsonl"]
    (sweep / RECORDS).write_bytes(kept)


@pytest.mark.parametrize("content", [b"{}", b'{"result": {"total": 0}}', b"\xff", b"[" * 100_000])
def test_a_result_of_something_else_is_refused(sweep, tmp_path, content: bytes) -> None:
    store = clone(sweep, tmp_path / "clone")
    change(store, store.name(TASKS[0]), content)
    with pytest.raises(ValueError, match=rf"records\.zip: .*damaged: .*{TASKS[0].hash}.* is not the result"):
        list(archive_contents(store, TASKS))


def test_names_that_are_no_tasks_never_become_files(sweep, tmp_path) -> None:
    store = clone(sweep, tmp_path / "clone")
    for name in ("../escaped.json", "/tmp/escaped.json", "tasks/sum/../../../escaped.json", "run.json"):
        change(store, name, b"{}")
    for task, data in archive_contents(store, TASKS):
        store.put(task, data)
    restore_times(store)
    assert {path.name for path in store.folder.iterdir()} == {
        RECORDS,
        "tasks",
        "timings.jsonl",
        "sessions.jsonl",
    }
    assert {path.name for path in tmp_path.iterdir()} == {"clone"}
    assert len(list(store.folder.glob("tasks/*/*"))) == len(TASKS)


def test_an_entry_that_claims_too_much_is_refused_before_it_is_unpacked(sweep, tmp_path, monkeypatch) -> None:
    store = clone(sweep, tmp_path / "clone")
    monkeypatch.setattr("palrnn.sweeps.archive.MOST_BYTES", 1_000_000)
    change(store, store.name(TASKS[0]), b" " * 1_000_001)
    with pytest.raises(ValueError, match="claims 1,000,001 bytes"):
        list(archive_contents(store, TASKS))


def test_a_damaged_archive_is_named(sweep, tmp_path) -> None:
    whole = (sweep / RECORDS).read_bytes()
    for place, data in enumerate((b"", whole[:200], whole[: len(whole) // 2], b"PK" + whole[2:-40])):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / RECORDS).write_bytes(data)
        with pytest.raises(ValueError, match=rf"{folder}/records\.zip: not an archive"):
            list(archive_contents(Store(folder), TASKS))
    # one byte of a compressed result: found by its checksum, or no longer JSON
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        entry = file.getinfo(Store(sweep).name(TASKS[0]))
    at = entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2
    folder = tmp_path / "flipped"
    folder.mkdir()
    (folder / RECORDS).write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    with pytest.raises(ValueError, match="damaged"):
        list(archive_contents(Store(folder), TASKS))
