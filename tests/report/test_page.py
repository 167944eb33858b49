"""The page as a structure: everything escaped, labelled, linked and self-contained."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from example_runs import changed_run, example_run, example_tuning
from made_runs import seen, tent
from page_reader import Reader, plots, read

import palrnn.report
from palrnn.engine import style
from palrnn.geometry import GeometryComparison
from palrnn.invariants import Fate, Viability
from palrnn.report.document import report_page, write_report
from palrnn.report.drawing import within_sight
from palrnn.report.page import page_html
from palrnn.report.registry import headlines
from palrnn.report.sections.attractor import portrait
from palrnn.report.sections.power import power
from palrnn.report.view import Run
from palrnn.tuning import Comparison

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<b>"


@pytest.fixture(scope="module")
def page() -> Reader:
    return read([example_run()])


def test_every_element_is_closed_and_every_id_is_unique(page: Reader) -> None:
    assert page.stack == []
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert [key for key, count in ids.items() if count > 1] == []


def test_every_section_is_there(page: Reader) -> None:
    keys = [attributes["id"] for attributes in page.all("section")]
    wanted = (
        "verdict attractor forecast power invariants fixed-points series symbols geometry filter evidence"
    )
    assert keys == [*wanted.split(), "training", "done"]
    linked = {attributes["href"][1:] for attributes in page.all("a") if attributes["href"].startswith("#")}
    assert set(keys) < linked


def test_every_figure_has_words_and_data(page: Reader) -> None:
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    drawn = [attributes for attributes in page.all("div") if attributes.get("class") == "plot"]
    assert len(drawn) == len(page.all("figure")) == len(plots(page)) >= 10
    for attributes in drawn:
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
        assert attributes["aria-describedby"] in ids
        assert attributes["id"] in plots(page)
    captions = page_html(report_page([example_run()])).split("<figcaption")[1:]
    # a summary that says something is at least a short sentence
    assert all(len(re.sub(r"<[^>]*>", "", caption.split("</figcaption>")[0])) > 40 for caption in captions)


def test_every_control_has_a_label(page: Reader) -> None:
    labelled = {attributes["for"] for attributes in page.all("label")}
    assert {attributes["id"] for attributes in page.all("select")} <= labelled
    assert all(attributes["type"] == "button" for attributes in page.all("button"))
    assert page.all("html")[0]["lang"] == "en"


def test_the_page_asks_nothing_of_a_network(page: Reader) -> None:
    for _, attributes in page.elements:
        for name in ("src", "href", "action", "poster", "srcset"):
            assert not re.match(r"(https?:)?//", attributes.get(name, "")), attributes
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script-src" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]
    css = (Path(palrnn.report.__file__).parent / "page.css").read_text()
    assert "url(" not in css
    assert "@import" not in css


def test_downloads_carry_their_content(page: Reader) -> None:
    files = [attributes for attributes in page.all("a") if "download" in attributes]
    names = {attributes["download"] for attributes in files}
    assert {
        "report.json.gz",
        "generated.csv.gz",
        "fan.csv.gz",
        "forecast.csv.gz",
        "loss.csv.gz",
        "invariants.csv",
        "lyapunov.csv",
    } <= names
    assert {
        "codes.csv",
        "transitions.csv",
        "eigenvalues.csv.gz",
        "overlap.csv",
        "filter.csv.gz",
        "tuning.csv",
    } <= names
    assert all(attributes["href"].startswith("data:") for attributes in files)


def hostile_run() -> Run:
    run = example_run(HOSTILE, columns=(HOSTILE, "{x}%{y}", "$z$"))
    facts = {HOSTILE: {HOSTILE: HOSTILE, "list": [HOSTILE, 1.5, None, True]}}
    tuning, card = run["tuning"], run["invariants"]
    stages = {f"{HOSTILE}{i}": result for i, result in enumerate(tuning.results.values())}
    hostile = dataclasses.replace(card, system=HOSTILE)
    changes = {"tuning": Comparison(stages, 0.5), "invariants": hostile}
    return dataclasses.replace(changed_run(run, **changes), facts=facts)


@pytest.mark.parametrize("count", [1, 2])
def test_hostile_names_stay_text(count: int) -> None:
    plain, hostile = read([example_run()] * count), read([hostile_run()] * count)
    assert hostile.stack == []
    assert "alert(1)" in hostile.text
    # no element and no event handler more than with harmless names
    kinds = Counter(tag for tag, _ in hostile.elements)
    assert kinds["script"] == Counter(tag for tag, _ in plain.elements)["script"]
    assert kinds["img"] == 0
    assert not [name for _, attributes in hostile.elements for name in attributes if name.startswith("on")]
    # inside figures Plotly would read markup: there it is escaped too
    for content in plots(hostile).values():
        assert "<img" not in json.dumps(content)
        assert "<script" not in json.dumps(content)


def test_figures_are_valid_plotly(page: Reader) -> None:
    names = set(re.findall(r"(\w+): \"#", (Path(palrnn.report.__file__).parent / "page.js").read_text()))

    def resolved(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("@"):
            assert value[1:].split("/")[0] in names, f"{value} is no colour of page.js"
            return "#000000"
        if isinstance(value, list):
            return [resolved(part) for part in value]
        if isinstance(value, dict) and "bdata" in value:  # the schema of Plotly 5 does not know these yet
            return np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
        if isinstance(value, dict):
            return {key: resolved(part) for key, part in value.items()}
        return value

    for content in plots(page).values():
        # Plotly's own schema refuses unknown or malformed attributes
        go.Figure(data=resolved(content["traces"]), layout=resolved(content["layout"]))
        for view in content["views"]:
            go.Figure(layout=resolved(view["layout"]))
        assert all(len(choice) == len(content["traces"]) for choice in content["choices"])


def test_light_colours_are_the_palette_of_all_figures() -> None:
    script = (Path(palrnn.report.__file__).parent / "page.js").read_text()
    light = re.search(r"light: \{(.*?)\}", script, re.DOTALL)
    assert light is not None
    for name in ("BLUE", "VERMILION", "GREEN", "PURPLE", "ORANGE", "SKY"):
        assert f'{name.lower()}: "{getattr(style, name)}"' in light[1]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_fewer_coordinates_give_a_plane_or_a_delay_plot(dim: int) -> None:
    content = plots(read([example_run(dim=dim)]))["run0-attractor"]
    kind = "scatter3d" if dim == 3 else "scatter"
    assert {trace["type"] for trace in content["traces"]} == {kind}
    assert len(content["views"]) == (4 if dim == 3 else 0)
    if dim == 1:
        assert content["layout"]["yaxis"]["title"]["text"].endswith("steps later")


def test_the_points_of_a_map_are_not_joined() -> None:
    """A line between points that jump fills the plane: of the tent map it makes a triangle."""
    joined = {run.name: plots(read([run]))["run0-attractor"]["traces"][0]["mode"] for run in (
        example_run(dim=1), seen(tent()))}  # fmt: skip
    assert joined == {"lorenz": "lines", "tent": "markers"}


def test_the_free_runs_measured_in_training_are_drawn() -> None:
    run = example_run()
    (trace,) = plots(read([run]))["measured"]["traces"]
    updates, scores = (
        np.frombuffer(base64.b64decode(trace[name]["bdata"]), trace[name]["dtype"]) for name in "xy"
    )
    assert updates.tolist() == [each.update for each in run.measured]
    np.testing.assert_allclose(scores[:-1], [each.dstsp for each in run.measured[:-1]], rtol=1e-6)
    assert np.isnan(scores[-1])
    text = read([run]).text
    assert "Lowest after 18000 updates, 0.444; the run diverged in 1 of 10 measurements" in text
    every = [dataclasses.replace(each, dstsp=np.inf) for each in run.measured]
    lost = dataclasses.replace(run, measured=every)
    assert "The run diverged in all 10 measurements" in read([lost]).text


def test_a_run_without_results_still_makes_a_page() -> None:
    bare = dataclasses.replace(example_run(), losses=[], measured=(), results={}, fan="")
    keys = [attributes["id"] for attributes in read([bare]).all("section")]
    assert keys == ["attractor", "done"]


def test_a_model_that_diverged_at_once_makes_a_page() -> None:
    run = example_run()
    card = run["invariants"]
    gone = dataclasses.replace(card.hard, dstsp=None, lyapunov=None, spectrum_distance=None, diverged_at=3)
    lost = dataclasses.replace(run, generated=run.generated[:0], codes=run.codes[:0])
    lost = changed_run(lost, invariants=dataclasses.replace(card, hard=gone, symbols=None))
    assert "diverged after 3 steps" in read([lost]).text


def test_a_model_that_diverged_says_so_on_top_and_drops_no_card() -> None:
    run = example_run()
    card = run["invariants"]
    gone = dataclasses.replace(card.hard, dstsp=None, lyapunov=None, spectrum_distance=None, diverged_at=289)
    fates = Viability((Fate("diverges", 289),) * 10, 100_000)
    lost = dataclasses.replace(card, hard=gone, symbols=None, viability=fates)
    cards = headlines(dataclasses.replace(changed_run(run, invariants=lost), advice=("tau = 8 (now 16)",)))
    assert [each.label for each in cards] == [each.label for each in headlines(run)]
    assert cards[0].label == "Verdict"
    assert cards[0].value == "not usable"
    assert "Diverges after 289 steps (10 of 10 starts)" in cards[0].sentence
    assert "Try: tau = 8 (now 16)." in cards[0].sentence
    assert "chaotic" not in "".join(each.sentence for each in cards[:3])


def test_a_path_to_infinity_does_not_set_the_scale() -> None:
    run = example_run()
    wild = run.generated.copy()
    wild[-100:] *= np.geomspace(1.0, 1e8, 100)[:, None]
    figure = portrait(dataclasses.replace(run, generated=wild), "key")
    assert "too far from the data to be drawn" in figure.summary
    width = np.ptp(run.reference, axis=0).max()
    sight = within_sight(wild, run.reference)
    assert np.nanmax(np.abs(sight)) < 20 * width
    assert np.isnan(sight).any()
    np.testing.assert_array_equal(within_sight(run.reference, run.reference), run.reference)


def test_the_power_spectra_stand_beside_each_other() -> None:
    run = example_run()
    figure = power(run, "power")
    assert [trace["name"] for trace in figure.traces][:2] == ["x, reference", "x, model"]
    assert len(figure.traces) == 6
    # Lorenz-63 turns about 1.3 times per unit of time, which its third coordinate shows
    assert "z at 1.3" in figure.summary
    assert "D_H = 0.07" in figure.summary


@pytest.mark.parametrize(("count", "megabytes"), [(1, 3), (6, 8)])
def test_the_page_stays_small(tmp_path: Path, count: int, megabytes: float) -> None:
    write_report([example_run(f"run {i}", seed=i) for i in range(count)], tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < megabytes * 1e6


def test_no_runs_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        report_page([])


def test_each_of_several_runs_stands_beside_its_own_floor() -> None:
    one, other = example_run("one"), example_run("other")
    card = other["invariants"]
    values = np.r_[0.39, np.full(18, 1.2345), 2.13]
    floor = dataclasses.replace(card.dstsp_floor, values=values, length=777)
    other = changed_run(other, invariants=dataclasses.replace(card, dstsp_floor=floor))
    text = read([one, other]).text
    assert "20 pairs of 3000 steps" in text
    assert "1.23 (0.390 to 2.13, 20 pairs of 777 steps)" in text


@pytest.mark.parametrize("count", [1, 2])
def test_headings_do_not_skip_a_level(count: int) -> None:
    reader = read([example_run(f"run {i}") for i in range(count)])
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def card(run: Run, label: str) -> str:
    return next(card.sentence for card in headlines(run) if card.label == label)


def test_the_report_says_what_a_run_was_compared_with() -> None:
    data = example_run()
    card_of_system = dataclasses.replace(data["invariants"], system="lorenz63")
    simulated = changed_run(data, invariants=card_of_system)
    divergence = "State-space divergence D_stsp"
    assert "the generated path and the held-out data fill" in card(data, divergence)
    assert "stretches of the data differ" in card(data, divergence)
    assert "the generated path and a simulation of lorenz63 fill" in card(simulated, divergence)
    assert "simulations of lorenz63 differ" in card(simulated, divergence)
    assert "against the reference: the held-out data." in read([data]).text
    assert "against the reference: a simulation of lorenz63." in read([simulated]).text
    both = "against the reference: the held-out data or a simulation of lorenz63."
    assert both in read([data, simulated]).text


def test_rates_are_per_step_where_the_time_step_is_unknown() -> None:
    timed = example_run()
    untimed = dataclasses.replace(timed, dt=None)
    exponent = "Largest Lyapunov exponent λ₁"
    assert "in 1.14 time units" in card(timed, exponent)
    assert "in 1.14 steps" in card(untimed, exponent)
    for runs, rate in (
        ([timed], "per unit of time"),
        ([untimed], "per step"),
        ([timed, untimed], "per unit of time, or per step where that is unknown"),
    ):
        title = plots(read(runs))["lyapunov"]["layout"]["yaxis"]["title"]["text"]
        assert title == f"exponent {rate}"


@pytest.mark.parametrize(
    ("evidence", "dstsp", "said"),
    [(1.1, 6.0, True), (1.1, 0.5, False), (0.3, 6.0, False), (1.1, np.nan, False)],
)
def test_the_lesson_of_tuning_is_drawn_only_from_numbers_that_teach_it(
    evidence: float, dstsp: float, said: bool
) -> None:
    stages = example_tuning(heldout_evidence=evidence, dstsp=dstsp)
    words = card(changed_run(example_run(), tuning=stages), "Evidence gained by tuning")
    assert ("more evidence is not the same as better dynamics" in words) == said


def without_matrices(run: Run, **changes: Any) -> Run:
    gone = {"negative", "eigenvalues_itf", "eigenvalues_observed", "overlaps", "logdet_gap", "q90"}
    kept = {name: value for name, value in run["geometry"].to_dict().items() if name not in gone}
    return changed_run(run, geometry=GeometryComparison.from_dict(kept | changes))


def test_directions_are_not_counted_where_there_are_no_matrices() -> None:
    run = without_matrices(example_run("large"))
    alone, beside = read([run]), read([example_run("small"), run])
    for reader in (alone, beside):
        assert "not computed" in reader.text
        assert "large: no matrices were computed for its 960 parameters" in reader.text
        assert "large: the marginal-likelihood information is negative" not in reader.text
    assert "7 of 960" in beside.text
    assert "spectra" not in plots(alone)
    assert "spectra" in plots(beside)
    assert plots(alone)["overlap"]["traces"][0]["mode"] == "markers"


def test_without_a_curvature_of_forcing_the_rest_is_shown() -> None:
    reader = read([without_matrices(example_run(), gap=None, trace_itf=None, overlap=None)])
    assert "the forced rollout diverges on these steps" in reader.text
    assert {"spectra", "overlap"}.isdisjoint(plots(reader))
    assert "missing" in plots(reader)


def test_steps_at_which_the_forced_prediction_diverged_are_a_gap() -> None:
    run = example_run()
    forced = run["tracking"].forced.copy()
    forced[590:] = np.nan
    lost = changed_run(run, tracking=dataclasses.replace(run["tracking"], forced=forced))
    reader = read([lost])
    assert "without the 10 steps, from step 590 on, at which it diverges" in reader.text
    assert "at which it diverges" not in read([run]).text
    drawn = next(t for t in plots(reader)["run0-series"]["traces"] if t["name"] == "forced")["y"]["bdata"]
    assert np.isnan(np.frombuffer(base64.b64decode(drawn), "<f4")).sum() == 10
