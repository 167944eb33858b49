"""Results show themselves: lines when printed, a table and a picture in a notebook, nothing from outside."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import palrnn
from palrnn.engine.display import Display, bars_svg, curves_svg
from palrnn.invariants.viability import Fate

EVIL = "<script>alert('x')</script>\x1b[2J"


class Thing(Display):
    def heading(self):
        return EVIL

    def facts(self):
        return [("name", EVIL), ("longer name", "1")]

    def records(self):
        return [{"a": 1, "b": EVIL}]

    def picture(self):
        return bars_svg([(EVIL, 0.5)])


def _well_formed(text):
    assert "<script" not in text
    assert "\x1b" not in text
    assert not re.search(r"(src|href)\s*=|url\(", text)
    return ElementTree.fromstring(text)


def test_texts_from_outside_are_shown_and_never_obeyed():
    thing = Thing()
    lines = str(thing).splitlines()
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert lines[2] == "  longer name  1"
    page = _well_formed(thing._repr_html_())
    assert page.find(".//td").text.startswith("<script>")
    assert thing.to_frame().to_dict("records") == [{"a": 1, "b": EVIL}]


def test_a_curve_is_interrupted_by_gaps_and_cut_off_where_it_leaves_the_frame():
    x = np.column_stack([np.cos(np.arange(50) / 5), np.sin(np.arange(50) / 5)])
    gapped, wild = x.copy(), x.copy()
    gapped[20] = np.nan
    wild[30:] = 1e300
    page = _well_formed(curves_svg([("data", gapped), ("model", wild)]))
    paths = [part.attrib["d"] for part in page if part.tag.endswith("path")]
    assert [path.count("M") for path in paths] == [2, 1]
    assert [path.count("M") + path.count("L") for path in paths] == [49, 30]
    assert curves_svg([]) == ""
    assert curves_svg([("data", np.full((5, 2), np.nan))]) == ""
    one = _well_formed(curves_svg([("data", x[:, :1])]))
    numbers = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", one[0].attrib["d"]), dtype=float)
    assert (np.diff(numbers[:, 0]) > 0).all()  # over time


def test_bars_are_as_long_as_their_numbers():
    page = _well_formed(bars_svg([("a", 1.0), ("b", 0.25), ("c", np.nan), ("d", 7.0)]))
    lengths = [float(part.attrib["width"]) for part in page if part.tag.endswith("rect")]
    assert lengths == [150.0, 37.5, 0.0, 150.0]


def test_viability_shows_how_many_starts_move_on():
    fates = (*[Fate("moves on")] * 8, Fate("rests", 250), Fate("cycle", 500, 7))
    found = palrnn.Viability(fates, 1000)
    assert str(found).splitlines() == [
        f"Viability: {found.verdict}",
        "  moves on  8 of 10 starts",
        "  rests     1 of 10 starts",
        "  cycle     1 of 10 starts",
    ]
    bars = [part for part in _well_formed(found._repr_html_()).iter() if part.tag.endswith("rect")]
    assert [float(bar.attrib["width"]) for bar in bars] == [*[150.0] * 8, 37.5, 75.0]
    frame = found.to_frame()
    assert list(frame.columns) == ["outcome", "step", "period"]
    assert frame["step"].iloc[8] == 250


@pytest.fixture(scope="module")
def result():
    x = palrnn.lorenz63(800, seed=1)
    return palrnn.reconstruct(x, dt=0.01, latent_dim=6, gated=2, updates=20, sequence_length=50, tau=8)


def test_a_reconstruction_shows_what_it_is_and_a_free_run_on_the_data(result):
    lines = str(result).splitlines()
    assert lines[0].startswith("Reconstruction 'reconstruction': ALRNN(")
    assert any(line.split() == ["columns", "x1,", "x2,", "x3"] for line in lines)
    assert len(lines) < 12
    page = _well_formed(result._repr_html_())
    assert len([part for part in page.iter() if part.tag.endswith("path")]) == 2
    told = result.to_dict()
    assert (told["family"], told["latent_dim"], told["gated"], told["dt"]) == ("alrnn", 6, 2, 0.01)
    assert result.to_frame().shape[0] == 1


def test_a_comparison_of_geometries_shows_its_traces():
    figures = {
        "forcing": palrnn.Forcing.identity(8).to_dict(),
        "parameters": 9,
        "steps": 50,
        "gap": 1.0,
        "trace_itf": 100.0,
        "trace_observed": 10.0,
        "trace_complete": 20.0,
        "trace_missing": 10.0,
        "overlap": 0.5,
        "k": 3,
        "mir": 0.5,
        "paths": 8,
    }
    found = palrnn.GeometryComparison.from_dict(figures)
    assert "curvature gap" in str(found)
    bars = [part for part in _well_formed(found._repr_html_()).iter() if part.tag.endswith("rect")]
    # one and a half decades are the whole width: the gap is a decade of them
    assert [float(bar.attrib["width"]) for bar in bars][:2] == [150.0, 50.0]
    frame = found.to_frame().set_index("information")
    assert frame.loc["itf", "per_step"] == 100.0
    assert frame.loc["observed", "of_segment"] == 500.0


@pytest.mark.parametrize(
    "kind",
    [
        "Comparison",
        "GeometryComparison",
        "Reconstruction",
        "Scorecard",
        "SearchResult",
        "Viability",
    ],
)
def test_every_answer_shows_itself(kind):
    from palrnn.invariants.scorecard import Scorecard

    found = Scorecard if kind == "Scorecard" else getattr(palrnn, kind)
    for name in ("__str__", "_repr_html_", "to_dict", "to_frame"):
        assert getattr(found, name, None) is not getattr(object, name, None), f"{kind} has no {name}"


def test_a_scorecard_shows_the_verdict_and_scores(result):
    card = result.invariants(pairs=2, long_steps=1000, steps=200, discard=20)
    lines = str(card).splitlines()
    assert 1 < len(lines) < 15
    assert _well_formed(card._repr_html_()).find(".//table") is not None
    assert len(card.to_frame()) >= 1
    assert card.to_dict()["dstsp_floor"]["pairs"] == 2
