"""The study of error bars: its truths, its tables, and that it goes on where it was stopped."""

import csv
import json
from itertools import product

import numpy as np
import pytest
from command_line import call

from palrnn.coverage import coverage_status, coverage_study, update_page
from palrnn.coverage.reservoir import reservoir_ensemble
from palrnn.coverage.settings import SCALES, load_settings
from palrnn.coverage.shares import wilson_interval
from palrnn.coverage.study import study_tables, study_tasks
from palrnn.coverage.truths import identified, truth
from palrnn.coverage.work import RULES, dataset_seed, make_bars, model_task
from palrnn.data import Standardizer, lorenz63
from palrnn.engine.tables import from_records, write_table
from palrnn.geometry.bars import draws_interval
from palrnn.geometry.reflection import reflected
from palrnn.model import ALRNN, checkpoint_bytes

TRUTHS = ("linear", "alrnn", "lorenz63", "rossler")
TINY = """
scale = "tiny"

[[truths]]
name = "linear"
noises = [[0.3, 0.3]]
rows = [400]
datasets = 2
methods = ["sandwich", "likelihood", "blocks"]
updates = 300
warm_updates = 30
models = 3
draws = 20
"""


@pytest.fixture
def tiny(tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return file


def test_the_command_runs_goes_on_and_writes_tables(tiny, tmp_path, capsys):
    folder = tmp_path / "run"
    words = ("reproduce", "coverage", "-o", folder, "--workers", "1")
    code, out, _ = call(capsys, *words, "--scale", tiny, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["before"], found["done"], found["failed"]) == (0, 8, [])
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert "0 tasks done now, 8 before" in out
    code, out, _ = call(capsys, "status", folder, "--json")
    assert (code, json.loads(out)["done"]) == (0, 8)
    with (folder / "methods.csv").open() as stream:
        rows = {row["method"]: row for row in csv.DictReader(stream)}
    assert set(rows) == {"sandwich", "likelihood", "blocks"}
    for row in rows.values():
        share = float(row["covered 0.9"])
        ends = wilson_interval(share, 2)
        assert (float(row["least 0.9"]), float(row["most 0.9"])) == pytest.approx(ends, rel=1e-4)
        assert float(row["width 0.5"]) < float(row["width 0.9"])
    # two series of 400 rows, six parameters each; around teacher forcing none of the four weights is held
    assert float(rows["likelihood"]["covered 0.9"]) > float(rows["sandwich"]["covered 0.9"])


def test_a_folder_keeps_its_settings_and_can_be_continued_from_its_archive(tiny, tmp_path):
    folder = tmp_path / "run"

    def stop(done, total, figures):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        coverage_study(folder, scale=tiny, workers=1, progress=stop)
    assert 3 <= coverage_status(folder)["done"] < 8
    done = coverage_study(folder, workers=1)
    assert done.tally.before >= 3
    with pytest.raises(ValueError, match="holds results of other settings"):
        coverage_study(folder, scale="smoke")
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("settings.toml", "records.zip", "palrnn.json"):
        (clone / name).write_bytes((folder / name).read_bytes())
    again = coverage_study(clone, workers=1, compute=False)
    for row, other in zip(done.tables["methods"], again.tables["methods"], strict=True):
        assert row["covered 0.9"] == other["covered 0.9"]


def test_a_clone_does_not_train_the_models_of_bars_that_are_there(tiny, tmp_path):
    file = _changed(tiny, '"linear"', '"lorenz63"')
    text = file.read_text().replace('["sandwich", "likelihood", "blocks"]', '["varied"]')
    file.write_text(text.replace("updates = 300", "updates = 20").replace("datasets = 2", "datasets = 1"))
    done = coverage_study(tmp_path / "run", scale=file, workers=1)
    # a model, three varied ones and their bars; the first and the last are kept in the archive
    assert (done.tally.before, done.tally.done) == (0, 5)
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("settings.toml", "records.zip", "palrnn.json"):
        (clone / name).write_bytes((tmp_path / "run" / name).read_bytes())
    again = coverage_study(clone, workers=1)
    assert (again.tally.before, again.tally.done) == (2, 0)


def test_tables_alone_lose_nothing_that_other_rules_have_made(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    coverage_study(folder, scale=tiny, workers=1)
    kept = (folder / "records.zip").read_bytes()
    monkeypatch.setitem(RULES, "likelihood", 99)
    again = coverage_study(folder, workers=1, compute=False)
    assert {row["method"] for row in again.tables["methods"]} == {"sandwich", "blocks"}
    assert (folder / "records.zip").read_bytes() == kept


def test_a_table_that_other_rules_have_made_is_not_shown(tiny, tmp_path, monkeypatch):
    folder, page = tmp_path / "run", tmp_path / "page.md"
    file = _changed(tiny, '["sandwich", "likelihood", "blocks"]', '["likelihood"]')
    coverage_study(folder, scale=file, workers=1)
    assert (folder / "methods.csv").is_file()
    monkeypatch.setitem(RULES, "likelihood", 99)
    assert not coverage_study(folder, workers=1, compute=False).tables["methods"]
    assert not (folder / "methods.csv").exists()
    page.write_text("<!-- coverage: parameters -->\nold\n<!-- end -->\n")
    update_page(page, folder)
    assert "*Not computed yet.*" in page.read_text()


def test_models_of_flows_are_numbered_by_how_they_are_made_and_those_of_maps_are_not():
    of_flow, of_map = (model_task(name, (0.0, 0.1), 400, 0, 20) for name in ("rossler", "alrnn"))
    assert of_flow.settings["flow rules"] >= 2
    assert "flow rules" not in of_map.settings  # what was computed of maps is still theirs


def test_tables_are_written_between_the_marks_of_a_page(tiny, tmp_path):
    folder, page = tmp_path / "run", tmp_path / "page.md"
    coverage_study(folder, scale=_changed(tiny, "datasets = 2", "datasets = 5"), workers=1)
    marks = "".join(
        f"before\n<!-- coverage: {name} -->\nold\n<!-- end -->\n" for name in ("parameters", "forecasts")
    )
    page.write_text(marks)
    update_page(page, folder)
    text = page.read_text()
    assert "old" not in text
    assert "| linear | 0.3, 0.3 | 400 | parameters | likelihood | 5 |" in text
    assert "*Not computed yet.*" in text
    assert text.count("before") == 2
    few = tmp_path / "few"
    coverage_study(few, scale=tiny, workers=1)
    other = tmp_path / "other.md"
    other.write_text(marks)
    update_page(other, few)
    assert "3 settings have fewer than 5 data sets yet" in other.read_text()
    update_page(page, folder)
    assert page.read_text() == text
    page.write_text("nothing")
    with pytest.raises(ValueError, match="has no marks"):
        update_page(page, folder)


@pytest.mark.parametrize("scale", SCALES)
def test_scales_can_be_read_and_their_tasks_differ(scale):
    settings = load_settings(scale)
    assert settings.scale == scale
    if scale != "full":
        tasks = study_tasks(settings)
        assert len({task.hash for task in tasks}) == len(tasks)


def test_the_full_scale_asks_every_truth_noise_and_length():
    full, asked = load_settings("full"), {}
    for each in full.truths:
        for place in product([each.name], each.noises, each.rows, each.methods):
            assert place not in asked
            asked[place] = each.datasets
    levels = (0.0, 0.1, 0.3)
    others = {"itf laplace", "observed", "sandwich", "temperature", "blocks", "seeds"}
    for name, process, observation, rows in product(TRUTHS, levels, levels, (5000, 20_000)):
        of_map = name in ("linear", "alrnn")
        if of_map and process == observation == 0.0:
            continue  # nothing is left to chance
        for method in ("likelihood",) if of_map else ("varied", "reflected"):
            assert asked.pop((name, (process, observation), rows, method)) == 100
        for method in others:
            assert asked.pop((name, (process, observation), rows, method)) == 20
    assert not asked
    assert full.forecasts.observation_std == 0.1


def test_numbers_of_data_sets_begin_where_settings_say(tiny):
    settings = load_settings(_changed(tiny, "datasets = 2", "datasets = 2\nfirst = 1000"))
    numbers = [task.settings["number"] for task in study_tasks(settings)]
    assert set(numbers) == {1000, 1001}
    assert numbers == sorted(numbers)
    usual = {task.hash for task in study_tasks(load_settings(tiny))}
    assert not usual & {task.hash for task in study_tasks(settings)}


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_flows_are_asked_on_data_sets_that_no_rule_was_settled_on(scale):
    settings = load_settings(scale)
    flows = [each for each in settings.truths if each.name in ("lorenz63", "rossler")]
    assert all(each.first == 1000 for each in (*flows, settings.forecasts))
    # first data sets come first, whatever their numbers
    firsts = [task.settings["number"] % 1000 for task in study_tasks(load_settings("quick"))]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("name", ["linear", "alrnn"])
def test_a_map_is_asked_for_what_data_can_tell(name):
    known = truth(name)
    model, values = known.drift, known.true_values(0.3)
    assert len(known.names) == len(values)
    rng = np.random.default_rng(0)
    # what A and W share of an ungated unit may be moved from one to the other
    free, shift = model.latent_dim - model.gated, rng.standard_normal(model.latent_dim)
    shift[free:] = 0.0
    same = ALRNN(model.A + shift, model.W - np.diag(shift), model.h, model.E, model.gated)
    np.testing.assert_allclose(identified(same), values, atol=1e-12)
    x = known.series(0.0, 0.0, 400, 0)
    # it keeps going without any noise
    assert x[-100:].std() > 0.3


@pytest.mark.parametrize("name", ["lorenz63", "rossler"])
def test_the_fixed_point_of_a_flow_is_one(name):
    known = truth(name)
    velocity = np.empty(3)
    known.system.field(np.array(known.point), np.array(known.system.parameters), velocity)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-12)
    assert known.values[0] == known.system.lyapunov


def test_bars_of_ensembles_are_of_models_that_count_and_of_refits_beside_them():
    # maps z -> a z, of which the exponent is known: three models that count, one of their refits lost
    settings = {"truth": "lorenz63", "process": 0.0, "observation": 0.0, "rows": 400, "number": 0}
    settings |= {"updates": 10, "warm_updates": 1, "models": 4, "draws": 20}

    def kept(slope, distance):
        model = ALRNN(np.zeros(3), slope * np.eye(3), np.full(3, 0.01), np.eye(3), 0)
        return checkpoint_bytes(model, training={"distance": distance})

    slopes, away = (0.99, 0.98, 0.97, 0.9), (0.5, 0.6, 0.5, 9.0)
    inputs = {"model": kept(0.95, 0.5)}
    inputs |= {f"member {k + 1}": kept(a, d) for k, (a, d) in enumerate(zip(slopes, away, strict=True))}
    alone = make_bars(settings | {"method": "varied"}, inputs)
    refits = ((0.97, 0.4), (0.97, 0.5), (0.9, None), (0.9, 0.0))
    again = {f"refit of member {k + 1}": kept(*each) for k, each in enumerate(refits)}
    both = make_bars(settings | {"method": "reflected"}, inputs | again)
    assert alone["notes"] == both["notes"] == {"left out": 1}
    # per unit of time, of steps of 0.01; the refit of a model that does not count has no say
    first, again = 100 * np.log(slopes[:3]), 100 * np.log([0.97, 0.97, np.nan])
    shifted = reflected(first[:, None], again[:, None])[:, 0]
    assert shifted.mean() - first.mean() == pytest.approx(-np.median(again[:2] - first[:2]), rel=1e-9)
    for found, values in ((alone, first), (both, shifted)):
        ends = [found["low 0.9"][0], found["high 0.9"][0]]
        assert ends == pytest.approx(draws_interval(values, 0.9), rel=1e-6)


def test_forecasts_are_compared_on_the_same_data_sets(tmp_path, monkeypatch):
    # what makes a data set hard is the same for both, and larger than what tells them apart
    settings = load_settings("quick")
    settings = settings.changed(forecasts=settings.forecasts.changed(datasets=3))
    hard, ahead = np.array([0.1, 0.5, 0.9]), np.array([-0.02, -0.03, -0.01])

    class Kept:
        def timings(self):
            return {}

        def result_or_empty(self, task):
            if task.kind.name != "forecasts":
                return {}
            k = task.settings["number"] - 1000
            scores = (("ensemble", hard[k] + ahead[k]), ("echo-state networks", hard[k]))
            return {"rows": [{"forecaster": n, "until": 1.0, "coverage": 0.9, "crps": v} for n, v in scores]}

    ours, theirs = study_tables(settings, Kept())["forecasts"]
    assert ours["crps beyond networks"] == pytest.approx(-0.02)
    assert ours["crps beyond networks error"] == pytest.approx(ahead.std(ddof=1) / np.sqrt(3))
    assert ours["crps error"] > 10 * ours["crps beyond networks error"]
    assert theirs["crps beyond networks"] == 0.0
    write_table(tmp_path / "forecasts.csv", *from_records([ours, theirs]), digits=6)
    page = tmp_path / "page.md"
    page.write_text("<!-- coverage: forecasts -->\n<!-- end -->\n")
    update_page(page, tmp_path)
    assert "| ensemble | 3 | CRPS minus that of the networks | -0.02 ± 0.0058 |" in page.read_text()


def test_data_sets_differ():
    assert len({dataset_seed(number) for number in range(100)}) == 100


def test_reservoirs_foresee_better_than_persistence_and_climatology():
    x = lorenz63(3000, dt=0.02)
    x = Standardizer.fit(x).transform(x)
    networks = reservoir_ensemble(x[:2500], 60, 2, 0)
    contexts = np.stack([x[s : s + 100] for s in (2500, 2600, 2700)])
    target = np.stack([x[s + 100 : s + 125] for s in (2500, 2600, 2700)])
    ahead = np.mean([each.forecast(contexts, 25) for each in networks], axis=0)
    error = np.abs(ahead - target).mean()
    assert error < 0.5 * np.abs(contexts[:, -1:] - target).mean()
    assert error < 0.5 * np.abs(target).mean()


def test_settings_that_cannot_be_are_refused(tiny):
    with pytest.raises(ValueError, match="nothing is left to chance"):
        load_settings(_changed(tiny, "[[0.3, 0.3]]", "[[0.0, 0.0]]"))
    with pytest.raises(ValueError, match="without likelihood"):
        load_settings(_changed(tiny, '"linear"', '"lorenz63"'))
    with pytest.raises(ValueError, match="without varied and reflected"):
        load_settings(_changed(tiny, '"blocks"', '"reflected"'))
    with pytest.raises(ValueError, match="scale must be one of"):
        load_settings("vast")


def _changed(file, old, new):
    other = file.with_name("other.toml")
    other.write_text(file.read_text().replace(old, new))
    return other
