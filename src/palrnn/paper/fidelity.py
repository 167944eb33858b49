"""`docs/fidelity.md`: the summary as a page for people."""

from __future__ import annotations

from typing import Any

from palrnn.experiments.claim import AGREES, DIFFERS, INCOMPARABLE

_HEAD = """# Fidelity: the paper's claims, beside ours

Generated from the tables in `{folder}` by `palrnn reproduce report -o {folder} --page docs/fidelity.md`.
Intervals are 95 % bootstrap percentiles. The rule that decided each verdict stands beside it.

{counts}
"""


#: The figure that stands before the first table of a part of the paper.
_FIGURES = {
    "Fig. results a": ("results", "Ambiguity in the toy, curvature gap, and fine-tuning"),
    "Fig. matrix_mismatch": ("mismatch", "Log-det gap, upper quantile and leading-subspace overlap"),
    "Fig. rbpf_diagnostics": ("diagnostics", "Effective sample size and code entropy over a window"),
    "Fig. attractor_overlays": ("attractor", "Attractors of the true system and of two models"),
}
_OURS = ("estimators", "Entropy, gap and negative directions by estimator")


def fidelity_page(summary: dict[str, Any], folder: str, notes: str = "", figures: str | None = None) -> str:
    """Return the page of a summary whose tables are in ``folder``.

    ``notes`` come before the tables; ``figures`` is the folder of the pictures, as the page sees it.
    """
    verdicts = summary["verdicts"]
    words = {AGREES: "agree", DIFFERS: "differ", INCOMPARABLE: "cannot be compared"}
    counts = ", ".join(f"{verdicts[name]} {word}" for name, word in words.items())
    lines = [_HEAD.format(folder=folder, counts=f"Of {sum(verdicts.values())} claims: {counts}.")]
    if not summary["settings_are_the_papers"]:
        lines.append(
            f"These are the settings of scale `{summary['scale']}`, so nothing here can be compared.\n"
        )
    if notes:
        lines.append(notes.strip() + "\n")
    where = None
    for claim in summary["claims"]:
        if claim["where"] != where:
            where = claim["where"]
            lines += [
                f"\n## {where}\n",
                *_picture(figures, _FIGURES.get(where)),
                "| claim | paper | ours | verdict | decided by |",
                "|---|---|---|---|---|",
            ]
        cells = [claim[name] for name in ("claim", "paper", "ours", "verdict", "rule")]
        if claim["verdict"] != AGREES:
            cells[3] = f"**{cells[3]}**"
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    if summary["findings"]:
        lines += ["\n## What the paper's numbers do not show\n", *_picture(figures, _OURS)]
        lines += [f"- **{_begun(finding['about'])}**: {finding['found']}." for finding in summary["findings"]]
    if summary["computation"]:
        lines += ["\n## The computation\n", "| what | how many | seconds | machine |", "|---|---|---|---|"]
        for row in summary["computation"]:
            cells = [row["what"], row["count"], f"{row['seconds']:.0f}", row["machine"]]
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _picture(figures: str | None, figure: tuple[str, str] | None) -> list[str]:
    return [] if figures is None or figure is None else [f"![{figure[1]}]({figures}/{figure[0]}.png)\n"]


def _begun(words: str) -> str:
    return words[0].upper() + words[1:]


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value).replace("|", "\\|")
