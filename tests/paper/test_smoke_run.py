"""The whole paper at smoke scale: complete, resumable, published small, and redrawn from its tables."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from dask_cluster import Cluster, running_cluster
from rounding import differences

from palrnn.cli.main import main
from palrnn.engine.progress import quiet
from palrnn.paper import results_status
from palrnn.paper.archive import restore_results
from palrnn.paper.presets import preset_in
from palrnn.paper.study import study_tasks
from palrnn.paper.summary import write_summary
from palrnn.paper.tables import write_tables
from palrnn.sweeps import ClusterEngine, Store, run

FIGURES = ("results", "mismatch", "estimators", "artefacts", "diagnostics", "attractor", "front", "spectra")
TABLES = (
    "toy.csv",
    "gap.csv",
    "evidence.csv",
    "diagnostics.csv",
    "attractor.csv.gz",
    "checkpoints.csv",
    "floor.csv",
    "readings.csv",
    "further.csv",
    "truth.csv",
    "repeats.csv",
    "survival.csv",
    "forcing.csv",
    "spectra.csv",
    "noise.csv",
    "gates.csv",
    "gate_courses.csv",
)
RESULTS = Path(__file__).resolve().parents[2] / "results"


def run_here(*words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words, "-q"])
    assert caught.value.code == 0


def task_files(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.glob("tasks/*/[!.]*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_everything_is_done_and_every_figure_is_there(smoke: Path) -> None:
    preset, store = preset_in(smoke), Store(smoke)
    assert all(store.has(task) for task in study_tasks(preset))
    for name in FIGURES:
        heads = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}
        for kind, head in heads.items():
            assert (smoke / "figures" / f"{name}.{kind}").read_bytes().startswith(head)


def test_tables_have_one_row_per_unit_and_the_agreed_columns(smoke: Path) -> None:
    preset = preset_in(smoke)
    toy = pd.read_csv(smoke / "toy.csv")
    assert list(toy) == ["sigma_g", "seed", "entropy_bits", "mir", "log10_trace"]
    assert len(toy) == 5 * 4
    gap = pd.read_csv(smoke / "gap.csv")
    agreed = "process_std observation_std tau seed particles paths target entropy_bits gap trace_itf "
    agreed += "trace_observed trace_complete mir logdet_gap q90 overlap10 negative dstsp lyapunov"
    assert set(agreed.split()) <= set(gap)
    assert len(gap) == 3 * 16 + 4
    assert (gap["trace_observed"] / gap["trace_complete"]).sub(1 - gap["mir"]).abs().max() < 1e-8
    evidence = pd.read_csv(smoke / "evidence.csv")
    agreed = "process_std observation_std length configuration evidence dstsp lyapunov lyapunov_error "
    agreed += "fitted_process_std fitted_observation_std seconds"
    assert set(agreed.split()) <= set(evidence)
    assert len(evidence) == 4 * 2 * 3
    error = evidence["lyapunov"] - preset.invariants.lyapunov_reference
    assert error.sub(evidence["lyapunov_error"]).abs().max() < 1e-8


def test_the_course_of_the_noise_of_each_model_is_a_table(smoke: Path) -> None:
    courses, start = pd.read_csv(smoke / "gate_courses.csv"), preset_in(smoke).gates.start
    assert courses["iteration"].tolist() == list(range(23))
    assert set(courses["process_std"]) == {0.1}
    first = courses.iloc[0]
    assert (first["fitted_process_std"], first["fitted_gate_std"]) == (start.process_std, start.gate_std)
    assert courses["fitted_gate_std"].nunique() > 10


def test_a_smaller_scale_never_stands_in_for_the_papers_numbers(smoke: Path) -> None:
    summary = json.loads((smoke / "summary.json").read_text())
    assert len(summary["claims"]) > 25
    assert {claim["verdict"] for claim in summary["claims"]} == {"cannot be compared"}
    assert all("smoke" in claim["rule"] for claim in summary["claims"])


@pytest.mark.slow
def test_a_run_killed_in_the_middle_continues_to_the_same_files(
    smoke: Path, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    # a preset of one's own with the first variant only: its tasks are those of the smoke scale
    head, _, rest = (
        (smoke / "settings.toml").read_text().partition('[[gap.variants]]\nname = "more particles"')
    )
    own = tmp_path / "own.toml"
    # studies after these stand on others that are left out
    own.write_text(head + rest[rest.index("[evidence]") : rest.index("[forcing]")])
    folder = tmp_path / "killed"
    words = ("reproduce", "gap", "-o", str(folder), "--workers", "2", "--scale", str(own))
    process = start(*words)
    end = time.monotonic() + 120
    while len(task_files(folder)) < 12:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    during = results_status(folder)
    assert during["alive"]
    assert 0 < len(during["run"]["running"]) <= 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    after = results_status(folder)
    assert not after["alive"]
    assert after["done"] >= during["done"]
    kept, expected = len(task_files(folder)), study_tasks(preset_in(folder), ["gap"])
    assert 12 <= kept < len(expected) == 48
    process = start(*words)
    assert process.wait() == 0
    found, whole = task_files(folder), task_files(smoke)
    assert len(found) == len(expected)
    assert found == {name: whole[name] for name in found}


@pytest.mark.slow
def test_figures_and_summary_come_from_the_tables_alone(smoke: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in (*TABLES, "computation.csv", "settings.toml", "palrnn.json"):
        shutil.copy(smoke / name, folder)
    (folder / "notes.md").write_text("## Why\n\nBecause.\n")
    run_here("reproduce", "report", "-o", str(folder), "--page", str(tmp_path / "fidelity.md"))
    for name in ("summary.json", "fixed_q.csv", *(f"figures/{name}.svg" for name in FIGURES)):
        assert (folder / name).read_bytes() == (smoke / name).read_bytes()
    page = (tmp_path / "fidelity.md").read_text()
    assert "cannot be compared" in page
    assert "\n\n## Why\n\nBecause.\n\n" in page
    pictures = re.findall(r"!\[.+\]\((.+)\)", page)
    assert len(pictures) == len(FIGURES)
    assert all((tmp_path / picture).is_file() for picture in pictures)
    assert "entropy against its bound" in page.lower()


def test_a_study_of_which_little_is_done_has_a_summary_too(smoke: Path, tmp_path: Path) -> None:
    for name in ("settings.toml", "palrnn.json"):
        shutil.copy(smoke / name, tmp_path)
    rows = (smoke / "gap.csv").read_text().splitlines(keepends=True)
    (tmp_path / "gap.csv").write_text("".join(rows[:3]))
    run_here("reproduce", "report", "-o", str(tmp_path))
    claims = json.loads((tmp_path / "summary.json").read_text())["claims"]
    assert {claim["rule"] for claim in claims} == {"2 of 16 rows are there so far"}
    table = pd.read_csv(tmp_path / "fixed_q.csv")
    assert table["n"].tolist() == [2]
    assert table["spearman"].isna().all()


def test_the_published_files_make_a_fresh_folder_whole_again(smoke: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("settings.toml", "models.safetensors", "records.zip"):
        shutil.copy(smoke / name, folder)
    preset, store = preset_in(folder), Store(folder)
    status = results_status(folder)
    assert status["done"] == status["total"] - 1
    assert not task_files(folder)  # to ask changes nothing
    restore_results(preset, store)
    lacking = [task.kind.name for task in study_tasks(preset) if not store.has(task)]
    assert lacking == ["attractor"]
    whole = task_files(smoke)
    assert all(data == whole[name] for name, data in task_files(folder).items())
    write_tables(preset, store)
    assert (folder / "evidence.csv").read_bytes() == (smoke / "evidence.csv").read_bytes()


def test_an_archive_of_other_settings_is_not_used(smoke: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    settings = (smoke / "settings.toml").read_text().replace("updates = 600", "updates = 601")
    (folder / "settings.toml").write_text(settings)
    for name in ("models.safetensors", "records.zip"):
        shutil.copy(smoke / name, folder)
    preset, store = preset_in(folder), Store(folder)
    restore_results(preset, store)
    # what does not depend on a trained model is still valid
    kinds = {task.kind.name for task in study_tasks(preset) if store.has(task)}
    assert kinds == {"toy", "floor"}


@pytest.mark.slow
def test_the_command_runs_on_a_cluster_as_well(tmp_path: Path, smoke: Path) -> None:
    folder = tmp_path / "cluster"
    with running_cluster(tmp_path, workers=1) as made:
        run_here("reproduce", "toy", "--scale", "smoke", "-o", str(folder), "--scheduler", made.address)
    assert (folder / "toy.csv").read_bytes() == (smoke / "toy.csv").read_bytes()


@pytest.mark.slow
def test_the_studies_themselves_give_the_same_bytes_on_the_cluster(
    tmp_path: Path, cluster: Cluster, smoke: Path
) -> None:
    preset = preset_in(tmp_path / "cluster", "smoke")
    tasks = study_tasks(preset, ["toy", "gap", "evidence"])
    run(tasks, Store(tmp_path / "cluster"), ClusterEngine(cluster.address), progress=quiet)
    found, local = task_files(tmp_path / "cluster"), task_files(smoke)
    assert len(found) == len(tasks)
    assert found == {name: local[name] for name in found}


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in RESULTS.glob("*/summary.json")), ids=lambda p: p.name
)
def test_committed_tables_give_the_committed_summary(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.name.endswith((".csv", ".csv.gz", ".toml", "palrnn.json")):
            shutil.copy(path, tmp_path)
    write_summary(preset_in(tmp_path), tmp_path)
    here, there = (json.loads((place / "summary.json").read_text()) for place in (tmp_path, folder))
    # another processor adds in another order: sums of a few thousand numbers differ by 1e-13 of their size,
    # and correlations and intervals, made from differences of such sums, by some hundred times as much
    assert differences(here, there, relative=1e-10) == []
