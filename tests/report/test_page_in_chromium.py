"""The page in a real browser: nothing complains, every figure is drawn, controls work, also by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import EXECUTABLE, Chromium
from example_runs import changed_run, example_run
from made_runs import channels, growing, seen, tent

from palrnn.report.document import write_report
from palrnn.report.view import Run

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="no chromium or google-chrome on PATH")

# Opening a page takes the browser some six seconds of processor time, so what can be asked of one that is
# open already is asked there.
DESK, PHONE = 1280, 380
FIRST = ["verdict", "attractor", "forecast", "power", "invariants", "fixed-points"]
ORDER = [*FIRST, "series", "symbols", "geometry", "filter", "evidence", "training", "done"]


def it_fits(browser: Chromium, width: int) -> None:
    """Sections are in order, the grade is on the first screen and nothing reaches beyond it sideways."""
    keys = browser.run("[...document.querySelectorAll('section')].map(part => part.id)")
    assert keys == [key for key in ORDER if key in keys]
    assert keys[:6] == FIRST
    assert keys[-1] == "done"
    assert browser.run("window.innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth") <= width
    # nothing but a table that scrolls by itself reaches beyond the screen
    beyond = browser.run(
        "[...document.querySelectorAll('main *')].filter(node => !node.closest('.scroll, .plot, .sr')"
        f"  && node.getBoundingClientRect().right > {width}).map(node => node.outerHTML.slice(0, 80))"
    )
    assert beyond == []
    assert browser.run("document.querySelector('.banner .grade').getBoundingClientRect().top") < 700
    assert browser.complaints == []


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    # names as long as those of delayed columns, and codes as long as those of the default model: no control,
    # table or caption may widen a phone by them
    columns = ("membrane voltage", "membrane voltage, 16 steps ago", "membrane voltage, 32 steps ago")
    name = '<img src=x onerror="document.title=1">'
    write_report([example_run(name, columns=columns, gates_each=14)], path)
    return path


@pytest.fixture(scope="module")
def browser(report: Path) -> Iterator[Chromium]:
    with Chromium(DESK, 844) as chromium:
        chromium.open(report)
        yield chromium


def test_nothing_complains_and_nothing_is_fetched(browser: Chromium, report: Path) -> None:
    assert browser.complaints == []
    fetched = [url for url in browser.requests if not url.startswith(("data:", "blob:"))]
    assert fetched == [report.as_uri()]
    assert browser.run("document.title").startswith("Reconstruction report")


def test_a_report_with_every_section_fits_a_desk(browser: Chromium) -> None:
    it_fits(browser, DESK)
    keys = browser.run("[...document.querySelectorAll('section')].map(part => part.id)")
    assert keys == ORDER


def test_every_figure_is_drawn(browser: Chromium) -> None:
    empty = browser.run(
        "[...document.querySelectorAll('.plot')].filter(node => {"
        "  const canvas = node.querySelector('.gl-container canvas');"
        "  const marks = node.querySelectorAll('.trace, .bars path, .barlayer path');"
        "  return !(canvas && canvas.width > 0) && marks.length === 0;"
        "}).map(node => node.id)"
    )
    assert empty == []
    assert browser.run("document.querySelectorAll('.plot .main-svg').length") > 10


def test_the_theme_can_be_chosen(browser: Chromium) -> None:
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.run("(() => { const t = document.getElementById('theme'); t.value = 'dark';"
                " t.dispatchEvent(new Event('change')); })()")  # fmt: skip
    browser.wait_for("[...document.querySelectorAll('.plot')].every(p => p.dataset.drawn === 'dark')")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != light
    background = browser.run("document.getElementById('loss')._fullLayout.paper_bgcolor")
    assert background == "#1b1f24"
    browser.run("(() => { const t = document.getElementById('theme'); t.value = 'auto';"
                " t.dispatchEvent(new Event('change')); })()")  # fmt: skip
    browser.wait_for("[...document.querySelectorAll('.plot')].every(p => p.dataset.drawn === 'light')")


def test_the_scene_turns_by_keyboard(browser: Chromium) -> None:
    eye = "document.getElementById('run0-attractor')._fullLayout.scene.camera.eye.x"
    before = browser.run(eye)
    browser.run("document.querySelector('[data-turn=left]').focus()")
    browser.press("Enter", 13, "\r")
    browser.wait_for(f"Math.abs({eye} - {before}) > 0.05")


def test_a_view_and_a_choice_change_the_figure(browser: Chromium) -> None:
    def choose(control: str, value: str) -> None:
        browser.run(
            f"(() => {{ const s = document.getElementById('run0-attractor-{control}'); s.value = '{value}';"
            " s.dispatchEvent(new Event('change')); })()"
        )

    kinds = "new Set(document.getElementById('run0-attractor')._fullData.map(t => t.type))"
    choose("view", "1")
    browser.wait_for(f"[...{kinds}].join() === 'scatter'")
    assert browser.run("document.querySelector('.turns').hidden")
    choose("choice", "1")
    browser.wait_for(
        "document.getElementById('run0-attractor')._fullData.filter(t => t.visible === true).length === 1"
    )
    choose("choice", "0")
    choose("view", "0")
    browser.wait_for(f"[...{kinds}].join() === 'scatter3d'")
    assert browser.complaints == []


def test_tab_reaches_the_content_first_through_the_skip_link(browser: Chromium) -> None:
    browser.run("document.activeElement.blur()")
    browser.run("window.scrollTo(0, 0)")
    browser.press("Tab", 9)
    focused = browser.run("document.activeElement.textContent")
    assert browser.run("document.activeElement.matches('a, button, select, [tabindex]')"), focused


def test_a_packed_file_leaves_the_page_unpacked(browser: Chromium) -> None:
    browser.run(
        "URL.createObjectURL = blob => { window.handed = blob; return 'blob:none'; };"
        "HTMLAnchorElement.prototype.click = function () { window.handedName = this.download; };"
    )
    browser.run(
        "document.querySelector('a[data-packed]').dispatchEvent(new MouseEvent('click', {cancelable: true}))"
    )
    browser.wait_for("window.handedName !== undefined")
    name, text = browser.run("window.handed.text().then(text => [window.handedName, text])")
    assert name == "report.json"
    assert text.startswith("[")


def quick_run() -> Run:
    """Return a run whose report leaves out what takes long."""
    return changed_run(example_run("good"), geometry=None, diagnostics=None, tuning=None)


def cases() -> dict[str, list[Run]]:
    diverged, one, many = seen(growing()), seen(tent()), seen(channels())
    found = {"diverged": [diverged], "one column": [one], "64 columns": [many]}
    return found | {"side by side": [quick_run(), one]}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, found = tmp_path_factory.mktemp("cases"), cases()
    for name, runs in found.items():
        write_report(runs, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in found}


def no_axis_of_a_diverged_model_runs_to_billions(browser: Chromium) -> None:
    ends = browser.run(
        "[...document.querySelectorAll('.plot')].flatMap(node => Object.entries(node._fullLayout)"
        "  .filter(([key, axis]) => /^[xy]axis/.test(key) && axis.type === 'linear' && axis.range)"
        "  .flatMap(([, axis]) => axis.range)).concat([...document.querySelectorAll('.plot')]"
        "  .filter(node => node._fullLayout.scene).flatMap(node => ['xaxis', 'yaxis', 'zaxis']"
        "  .flatMap(key => node._fullLayout.scene[key].range)))"
    )
    assert max(abs(end) for end in ends) < 5000
    assert "diverges after" in browser.run("document.getElementById('verdict').textContent.toLowerCase()")
    assert "chaotic" not in browser.run("document.querySelector('.beside').textContent")


def many_columns_say_that_components_are_drawn(browser: Chromium) -> None:
    for key in ("attractor", "forecast", "power"):
        words = browser.run(f"document.querySelector('#{key} figcaption').textContent")
        assert "principal components (PC) of the 64 standardised columns" in words


def one_column_is_drawn_in_the_delay_plane(browser: Chromium) -> None:
    assert "delay plane" in browser.run("document.querySelector('#attractor figcaption').textContent")


#: What else holds on the page of one kind of run.
MORE = {
    "diverged": no_axis_of_a_diverged_model_runs_to_billions,
    "64 columns": many_columns_say_that_components_are_drawn,
    "one column": one_column_is_drawn_in_the_delay_plane,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diverged", "one column", "64 columns", "side by side"])
def test_every_kind_of_run_fits_a_phone_and_then_a_desk(
    browser: Chromium, pages: dict[str, Path], name: str
) -> None:
    browser.complaints.clear()
    browser.resize(PHONE, 844)
    browser.open(pages[name], dark=True)
    it_fits(browser, PHONE)
    browser.resize(DESK, 844)
    # figures that were drawn for a phone follow the width of the page
    browser.wait_for("document.querySelector('.plot')._fullLayout.width > 400")
    it_fits(browser, DESK)
    if name in MORE:
        MORE[name](browser)


def test_dark_phones_get_a_dark_page_that_fits_and_paper_a_light_one(
    browser: Chromium, report: Path, tmp_path: Path
) -> None:
    browser.resize(PHONE, 844)
    browser.open(report, dark=True)
    it_fits(browser, PHONE)
    assert browser.run("document.getElementById('loss').dataset.drawn") == "dark"
    wide = browser.run("document.getElementById('loss')._fullLayout.width")
    browser.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
    # afterwards the screen has its figures back, as dark and as wide as before
    browser.wait_for("document.getElementById('loss').dataset.drawn === 'dark'")
    browser.wait_for(f"document.getElementById('loss')._fullLayout.width === {wide}")
    assert browser.complaints == []


def test_without_webgl_the_attractor_is_shown_on_a_plane(tmp_path: Path) -> None:
    write_report([quick_run()], tmp_path / "report.html")
    with Chromium(flags=("--disable-3d-apis",)) as flat:
        flat.open(tmp_path / "report.html")
        assert flat.run("document.getElementById('run0-attractor-view').value") == "1"
        assert flat.run("document.querySelector('#run0-attractor-view option').disabled")
        assert flat.run("document.querySelectorAll('#run0-attractor .trace').length") > 1
        assert flat.complaints == []
