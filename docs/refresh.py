"""One source for every number: the tables that pages share are written from the page that owns them.

    python docs/refresh.py            # the tables, in seconds
    python docs/refresh.py --run      # also what README.md's lines print, and the notebook: some minutes

A place is between `<!-- name -->` and `<!-- end of name -->`; a test says where a page is behind.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, DOCS = ROOT / "README.md", ROOT / "docs"
NOTEBOOK = DOCS / "notebooks" / "first_steps.ipynb"
#: What docs/training.md calls the default settings: input noise follows the data.
DEFAULTS = {
    "lorenz63": "SOAP, M 60, P 40, input noise 0.02, the best of ten",
    "lorenz63, 5% noise": "SOAP, M 60, P 40, input noise 0.05, the best of ten",
}
Row = dict[str, str]


def tables(page: Path) -> list[list[Row]]:
    """Return the tables of a page, each as rows by the name of the column."""
    found = []
    for lines in re.findall(r"(?:^\|.*\|\n)+", page.read_text(), re.M):
        cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines.splitlines()]
        found.append([dict(zip(cells[0], row, strict=True)) for row in cells[2:]])
    return found


def rows_with(page: Path, *columns: str) -> list[Row]:
    """Return the rows of the first table of ``page`` that has all these columns."""
    for table in tables(page):
        if table and set(columns) <= set(table[0]):
            return table
    raise LookupError(f"{page.name} has no table with the columns {', '.join(columns)}")


def place(text: str, name: str) -> str:
    """Return what stands in the place ``name`` of a page."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->", text, re.S)
    if found is None:
        raise LookupError(f"there is no place <!-- {name} --> ... <!-- end of {name} -->")
    return found[1].strip("\n")


def with_place(text: str, name: str, content: str) -> str:
    """Return the page with other words in a place."""
    place(text, name)
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{content}\n\n{end}", text, flags=re.S)


def beside(row: Row) -> str:
    """Return our median score, its floor, and what was published."""
    ours = row["D_stsp, ours (range)"].partition(" (")[0]
    return f"{ours} ({row['floor']}); published: {row['D_stsp, published']}"


def field() -> str:
    """How good: the summary of docs/field.md, or what other pages have while there is none."""
    page = DOCS / "field.md"
    if page.exists() and "<!-- summary -->" in page.read_text():
        return re.sub(r"\]\((?!http|#)", "](docs/", place(page.read_text(), "summary"))
    families = {"alrnn": "AL-RNN", "shallow": "plain shallow PLRNN"}
    lines = ["| learned from | model | models | D_stsp, median (floor) | alive after 100,000 steps |"]
    lines.append("|---|---|---|---|---|")
    alive = "alive from 10 of 10 starts"
    for row in rows_with(DOCS / "training.md", "series", "settings", alive):
        if row["settings"] != DEFAULTS.get(row["series"]):
            continue
        score = f"{row['D_stsp, median (range)'].partition(' (')[0]} ({row['floor']})"
        lines.append(f"| {row['series']} | AL-RNN | {row['models']} | {score} | {row[alive]} |")
    for row in rows_with(DOCS / "field.md", "gates P", "D_stsp, published"):
        model = f"lorenz63, 5% noise | AL-RNN of 20 units, {row['gates P']} gates"
        lines.append(f"| {model} | {row['models']} | {beside(row)} | {row['alive']} |")
    for row in rows_with(DOCS / "field.md", "context", "D_stsp, published"):
        model = f"{row['context']}, {row['rows']} rows | {families[row['family']]}"
        lines.append(f"| {model} | {row['models']} | {beside(row)} | {row['alive']} |")
    for row in rows_with(DOCS / "field.md", "method", "flows", "good"):
        made = {"palrnn, defaults": "AL-RNN", "palrnn, search": "what a search finds"}.get(row["method"])
        if made is not None:
            near = f"{row['good']} good: within 0.5 of the floor, exponent within 15 %"
            count = round(int(row["models"]) * float(row["alive"].rstrip("%")) / 100)
            lives = f"{count} of {row['models']}"
            lines.append(f"| {row['flows']} flows of dysts | {made} | {row['models']} | {near} | {lives} |")
    for row in rows_with(DOCS / "shallow.md", "model", "D_stsp of each"):
        if row["model"].endswith("defaults"):
            score = f"{row['median']} ({row['floor']})"
            name = f"{row['model'].removesuffix(', defaults').replace('shallow', 'plain')} shallow PLRNN"
            lives = row["alive from 10 of 10 starts after 100,000 steps"]
            lines.append(f"| lorenz63, 5% noise | {name} | {row['models']} | {score} | {lives} |")
    about = (
        "Default settings, but for the rows with numbers of units (that size, tau 16, 100,000 updates) and "
        "the last two (forcing of strength 0.1, the last model), all of which had RAdam, as short series do; "
        "[training](docs/training.md), [the field's numbers](docs/field.md) and "
        "[the shallow PLRNN](docs/shallow.md) say more."
    )
    return "\n".join([*lines, "", about])


def fast() -> str:
    """How fast: rounded from docs/benchmarks.md."""
    page = DOCS / "benchmarks.md"
    update, passes = (
        {row[""]: float(row["ms"]) for row in rows_with(page, "", "ms", of)}
        for of in ("times palrnn", "times the products")
    )
    exact = {row["given one gate path"]: row for row in rows_with(page, "given one gate path", "seconds")}
    matrix = exact["matrix, 960 x 960"]
    told = re.search(r"([\d.]+) times .*?; .*\(([\d.]+)\)", matrix[""])
    if told is None:
        raise LookupError("docs/benchmarks.md does not tell the times of the observed information")
    seconds = float(matrix["seconds"])

    def of(found: dict[str, float], start: str) -> float:
        return next(value for name, value in found.items() if name.startswith(start))

    jax = of(passes, "JAX: a textbook"), of(passes, "JAX: the same")
    rows = [
        (
            "one training update",
            *(f"{of(update, name):.2g} ms" for name in ("palrnn", "the same products", "JAX", "PyTorch")),
        ),
        (
            "one filter pass, 256 particles x 200 steps",
            f"{of(passes, 'palrnn'):.2g} ms",
            f"{of(passes, 'the same products'):.0f} ms",
            f"{jax[0]:.0f} ms, batched by hand {jax[1]:.0f} ms",
            "",
        ),
        (
            "observed information given a gate path, 960 x 960",
            f"{seconds:.2g} s",
            f"{seconds / float(told[1]):.2g} s",
            f"{float(told[2]):.0f} s",
            "",
        ),
    ]
    head = ["| at the paper's settings, one thread | palrnn | the same products in BLAS | JAX | PyTorch |"]
    return "\n".join([*head, "|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])


def recipe() -> str:
    """Settings of training side by side, of the noisy series."""
    alive, score = "alive from 10 of 10 starts", "D_stsp, median (range)"
    lines = [
        f"| lorenz63, 5% noise, settings | models | {alive} | {score} | floor |",
        "|---|---|---|---|---|",
    ]
    for row in rows_with(DOCS / "training.md", "series", "settings", alive):
        if row["series"] == "lorenz63, 5% noise":
            cells = [row[name] for name in ("settings", "models", alive, score, "floor")]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def worth() -> str:
    """What other remedies gave, before and after."""
    lives = "alive from 10 of 10 starts after 100,000 steps"
    shallow = {row["model"]: row[lives] for row in rows_with(DOCS / "shallow.md", "model", lives)}
    gaps = rows_with(DOCS / "gaps.md", "learned", "forced", "D_stsp")
    scores = {row["learned"]: row["D_stsp"] for row in gaps if row["forced"] == "every 10th step"}
    duffing = rows_with(DOCS / "how-to" / "inputs.md", "error after 50 steps, told", "not told")
    told, untold = (
        sorted(float(row[name]) for row in duffing) for name in ("error after 50 steps, told", "not told")
    )
    flows = {row["method"]: row for row in rows_with(DOCS / "field.md", "method", "flows", "good")}
    usual, found = (flows[f"palrnn, {how}"] for how in ("defaults", "search"))
    rows = [
        ("the clipped shallow PLRNN", f"plain: {shallow['shallow, defaults']} live")
        + (f"clipped: {shallow['clipped, defaults']} live", "[The shallow PLRNN](../shallow.md)"),
        ("a search", f"default settings: {usual['good']} of {usual['models']} models of flows good")
        + (f"{found['good']} of {found['models']}", "[The field's numbers](../field.md)"),
        ("gaps as NaN", f"interpolated: D_stsp {scores['from interpolated values']}")
        + (scores["from gaps"], "[Gaps](../gaps.md)"),
        ("the drive as an input", f"error {untold[0]:g} to {untold[-1]:g} after 50 steps")
        + (f"{told[0]:g} to {told[-1]:g}", "[Inputs](inputs.md)"),
    ]
    head = ["| remedy | without | with | from |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def caption() -> str:
    """What the first picture shows, from what its script found."""
    found = json.loads((DOCS / "pictures" / "attractor.json").read_text())
    parts = []
    for name, runs in found.items():
        shown = next(run for run in runs if run["shown"])
        grades = [run["grade"] for run in runs]
        words = ("good", "fair", "not usable", "diverged in training")
        counts = ", ".join(f"{grades.count(word)} {word}" for word in words if word in grades)
        score = f"D_stsp {shown['dstsp']:.2f}, floor {shown['floor']:.2f}"
        parts.append(f"{name[0].upper()}{name[1:]}: the median of {len(runs)} seeds, {score} ({counts}).")
    how = (
        "Default settings but for the optimiser, RAdam; for the laser `lags=5, delay=2`, and forcing of "
        "strength 0.1 at every step."
    )
    return " ".join([*parts, how])


#: Where each place is, and what belongs there.
PLACES: list[tuple[Path, str, Callable[[], str]]] = [
    (README, "field", field),
    (README, "fast", fast),
    (README, "caption", caption),
    (DOCS / "index.md", "caption", caption),
    (DOCS / "gallery.md", "caption", caption),
    (DOCS / "how-to" / "bad-verdict.md", "recipe", recipe),
    (DOCS / "how-to" / "bad-verdict.md", "worth", worth),
]

LINES = re.compile(r"```python\n(.*?)```\n+(?:[^\n]+\n+)?```text\n(.*?)```", re.S)


def printed(code: str) -> str:
    """Return what some lines of Python print, in an empty folder."""
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {"__name__": "lines"})
    return out.getvalue()


def executed(notebook: Path) -> None:
    """Run a notebook and keep its outputs in it."""
    import nbclient
    import nbformat

    book = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            book, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # the hour of the day, which changes with every run
    book.metadata.pop("widgets", None)
    nbformat.write(book, notebook)


def main() -> int:
    """Write every place; with --run, also what has to be computed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", action="store_true")
    arguments = parser.parse_args()
    for page, name, make in PLACES:
        page.write_text(with_place(page.read_text(), name, make()))
    if arguments.run:
        text = README.read_text()
        shown = LINES.search(text)
        if shown is None:
            raise LookupError("README.md has no lines of Python with what they print")
        README.write_text(text[: shown.start(2)] + printed(shown[1]) + text[shown.end(2) :])
        executed(NOTEBOOK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
