"""`docs/fidelity.md`: the summary as a page for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from palrnn.paper.claim import AGREES, DIFFERS, INCOMPARABLE, OPEN, SHOWN, TRUE
from palrnn.paper.figures import RESULTS
from palrnn.paper.study import FINDINGS, Picture, all_studies

#: The first line of the page, by which it is known.
TITLE = "# Fidelity: the paper's claims, beside ours"
_TIMES = (
    "Each task counts with the first study that needs it. `seconds` is the time from beginning to end of "
    "each task, on cores that may have been shared; `of processor` is what it had of them, where recorded."
)
_HEAD = """{title}

Generated from the tables in `{folder}` by `palrnn reproduce report -o {folder} --page docs/fidelity.md`.
Intervals are 95 % bootstrap percentiles. The rule that decided each verdict stands beside it.

{counts}
"""


def fidelity_page(summary: dict[str, Any], folder: str, notes: str = "", figures: str | None = None) -> str:
    """Return the page of a summary whose tables are in ``folder``.

    ``notes`` come before the tables; ``figures`` is the folder of the pictures, as the page sees it.
    """
    verdicts = summary["verdicts"]
    counts = f"Of {sum(verdicts.values())} claims: {_counts(verdicts)}."
    for rival in summary["rivals"]:
        counts += (
            f"\nWith the study `{rival['study']}` by the reading `{rival['reading']}`, the best of them and "
            f"chosen after looking: {_counts(rival['verdicts'])}."
        )
    lines = [_HEAD.format(title=TITLE, folder=folder, counts=counts)]
    if not summary["settings_are_the_papers"]:
        lines.append(
            f"These are the settings of scale `{summary['scale']}`, so nothing here can be compared.\n"
        )
    pictures = [RESULTS, *(picture for study in all_studies().values() for picture in study.pictures)]
    for part in (TRUE, SHOWN):
        lines += _part(summary["listings"], part, _pictures(figures, pictures, part))
    if notes:
        lines.append(notes.strip() + "\n")
    lines += _part(summary["listings"], OPEN, _pictures(figures, pictures, OPEN))
    where = None
    for claim in summary["claims"]:
        if claim["where"] != where:
            where = claim["where"]
            lines += [
                f"\n## {where}\n",
                *_pictures(figures, pictures, where),
                *_head("claim", "paper", "ours", "verdict", "decided by"),
            ]
        cells = [claim[name] for name in ("claim", "paper", "ours", "verdict", "rule")]
        if claim["verdict"] != AGREES:
            cells[3] = f"**{cells[3]}**"
        lines.append(_row(cells))
    if summary["findings"]:
        lines += [f"\n## {FINDINGS}\n", *_pictures(figures, pictures, FINDINGS)]
        lines += [
            f"- **{_capitalised(finding['about'])}**: {finding['found']}." for finding in summary["findings"]
        ]
    if summary["computation"]:
        lines += [f"\n## The computation\n\n{_TIMES}\n"]
        lines += _head("study", "what", "how many", "seconds", "of processor", "machine")
        lines += [_row(_computation(row)) for row in summary["computation"]]
    return "\n".join(lines) + "\n"


def _counts(verdicts: dict[str, int]) -> str:
    words = {AGREES: "agree", DIFFERS: "differ", INCOMPARABLE: "cannot be compared"}
    return ", ".join(f"{verdicts[name]} {word}" for name, word in words.items())


def _part(listings: list[dict[str, Any]], part: str, shown: list[str]) -> list[str]:
    """Return the listings of one part of the page, under its heading; nothing if it has none."""
    lines = []
    for listing in listings:
        if listing["part"] == part:
            lines += [f"\n### {listing['title']}\n\n{listing['words']}\n", *_head(*listing["columns"])]
            lines += [_row(row) for row in listing["rows"]]
    return [f"\n## {part}\n", *shown, *lines, ""] if lines else []


def _head(*names: str) -> list[str]:
    return [_row(names), "|" + "---|" * len(names)]


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _computation(row: dict[str, Any]) -> list[Any]:
    known = row["timed"] == row["count"]
    some = f" ({row['timed']:.0f} of them)" if row["timed"] and not known else ""
    busy = f"{row['processor']:.0f}{some}" if row["timed"] else ""
    return [row["part"], row["what"], row["count"], f"{row['seconds']:.0f}", busy, row["machine"]]


def _pictures(figures: str | None, pictures: list[Picture], part: str) -> list[str]:
    """Return the pictures that go with one part of the page."""
    if figures is None:
        return []
    return [
        f"![{picture.words}]({figures}/{picture.figure}.png)\n"
        for picture in pictures
        if picture.where == part
    ]


def _capitalised(words: str) -> str:
    return words[0].upper() + words[1:]


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value).replace("|", "\\|")
