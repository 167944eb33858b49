"""The page itself: one HTML file that carries its styles, scripts and numbers, and asks nothing of a network.

All text is escaped here and nowhere else. A content-security policy lists the two scripts of the page by
their hash, so that nothing that slips in with the data could run, and no address is ever loaded. Plotly is
packed: ``page.js`` unpacks it and runs it as the script with the hash that the policy lists.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from palrnn.engine.files import write_text
from palrnn.engine.plain import plain
from palrnn.report.blocks import (
    Banner,
    Beside,
    Block,
    Card,
    Cards,
    Download,
    Figure,
    Grid,
    Note,
    Page,
    Section,
    Side,
    Table,
    Text,
)

#: Keys whose strings Plotly would read as markup; they hold plain text here and are escaped on the way out.
_FIGURE_TEXT = frozenset({"name", "text", "hovertext", "ticktext", "title", "customdata", "x", "y"})

#: By this a report is recognised as one of ours, which the next one may replace.
MARK = '<meta name="generator" content="palrnn report">'

_ANGLES = str.maketrans("<>", "‹›")


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Write ``page`` to ``path`` as one self-contained HTML file, whole or not at all."""
    write_text(path, page_html(page))


def page_html(page: Page) -> str:
    """Return ``page`` as HTML."""
    plotly, script = _plotly(), _asset("page.js")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
        # Plotly's 3-D scenes compile small functions, hence unsafe-eval
        f"script-src 'unsafe-eval' {_hash(plotly)} {_hash(script)}"
    )
    contents = "".join(
        f'<li><a href="#{escape(section.key)}">{escape(section.title)}</a></li>' for section in page.sections
    )
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n',
            f"{MARK}\n",
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{escape(page.title)}</title>\n<style>{_asset('page.css')}</style>\n</head>\n<body>\n",
            '<a class="skip" href="#content">Skip to the content</a>\n',
            f'<header class="top"><div><p class="brand">palrnn</p><h1>{escape(page.title)}</h1>',
            f'<p class="subtitle">{escape(page.subtitle)}</p></div>',
            '<div class="tools"><label for="theme">Theme</label><select id="theme">',
            '<option value="auto">as the system</option><option value="light">light</option>',
            '<option value="dark">dark</option></select>',
            '<button type="button" id="print">Print</button></div></header>\n',
            f'<div class="frame"><nav aria-label="Contents"><ol>{contents}</ol>',
            _downloads(page.downloads, "The numbers"),
            '</nav>\n<main id="content" tabindex="-1">\n',
            '<p class="note" id="plain" hidden>This browser is too old to draw the figures, which need one '
            "of 2023 or later; every figure is also described in words and has its numbers below it.</p>\n"
            '<noscript><p class="note">Figures need JavaScript; every figure is also described in words, '
            "and its numbers can be downloaded below it.</p></noscript>\n",
            "".join(_section(section) for section in page.sections),
            "</main></div>\n",
            f'<script type="application/gzip" id="plotly">{_packed()}</script>\n',
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _section(section: Section) -> str:
    key = escape(section.key)
    lead = f'<p class="lead">{escape(section.lead)}</p>' if section.lead else ""
    body = "".join(_block(block) for block in section.blocks)
    title = f'<h2 id="{key}-title">{escape(section.title)}</h2>'
    return f'<section id="{key}" aria-labelledby="{key}-title">{title}{lead}{body}</section>\n'


def _block(block: Block, level: int = 3) -> str:
    if isinstance(block, Banner):
        return _banner(block)
    if isinstance(block, Cards):
        heading = f"<h{level}>{escape(block.heading)}</h{level}>" if block.heading else ""
        return f"{heading}{_cards(block.cards)}"
    if isinstance(block, Beside):
        return f'<div class="beside">{_figure(block.figure, level)}{_cards(block.cards)}</div>'
    if isinstance(block, Text):
        return f"<p>{escape(block.words)}</p>"
    if isinstance(block, Note):
        return f'<p class="note">{escape(block.words)}</p>'
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Grid):
        return f'<div class="grid">{"".join(_table(table) for table in block.tables)}</div>'
    if isinstance(block, Side):
        columns = "".join(
            f'<div class="column"><h3>{escape(heading)}</h3>'
            f"{''.join(_block(part, 4) for part in parts)}</div>"
            for heading, parts in block.columns
        )
        return f'<div class="side">{columns}</div>'
    return _figure(block, level)


def _banner(banner: Banner) -> str:
    sign = {"good": "✓", "fair": "~"}.get(banner.grade, "✕")
    grade = escape(banner.grade)
    advice = "".join(f"<li>{escape(words)}</li>" for words in banner.advice)
    advice = f'<div class="try"><p>What to try next</p><ul>{advice}</ul></div>' if advice else ""
    return (
        f'<div class="banner" data-grade="{grade}"><p class="grade">'
        f'<span aria-hidden="true">{sign}</span> {grade}</p>'
        f"<p>{escape(banner.words)}</p>{advice}</div>"
    )


def _cards(cards: Iterable[Card]) -> str:
    parts = "".join(
        f'<div class="card"><dt>{escape(card.label)}</dt>'
        f'<dd class="value">{escape(card.value)}{_unit(card.unit)}</dd>'
        f"<dd>{escape(card.sentence)}</dd></div>"
        for card in cards
    )
    return f'<dl class="cards">{parts}</dl>'


def _unit(unit: str) -> str:
    return f' <span class="unit">{escape(unit)}</span>' if unit else ""


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    head = f"<thead><tr>{head}</tr></thead>" if any(table.header) else ""
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>"
        for row in table.rows
    )
    caption = escape(table.caption)
    return (
        f'<div class="table"><p class="caption" aria-hidden="true">{caption}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table>'
        f'<caption class="sr">{caption}</caption>{head}<tbody>{rows}</tbody></table></div></div>'
        f"{_downloads(table.downloads)}"
    )


def _figure(figure: Figure, level: int) -> str:
    key = escape(figure.key)
    content = {
        "traces": _plain(figure.traces),
        "layout": _plain(figure.layout),
        "views": [{"plane": view.plane, "layout": _plain(view.layout)} for view in figure.views],
        "choices": [list(choice.visible) for choice in figure.choices],
    }
    return (
        f'<figure aria-labelledby="{key}-title"><h{level} id="{key}-title">{escape(figure.title)}</h{level}>'
        f'{_controls(figure)}<div class="plot" id="{key}" role="img" aria-label="{escape(figure.title)}" '
        f'aria-describedby="{key}-summary" style="height:{int(figure.height)}px"></div>'
        f'<script type="application/json" data-plot="{key}">{_json(content)}</script>'
        f'<figcaption id="{key}-summary">{escape(figure.summary)}</figcaption>'
        f"{_downloads(figure.downloads)}</figure>"
    )


def _controls(figure: Figure) -> str:
    key, parts = escape(figure.key), []
    for kind, label, names in (
        ("view", "View", [view.name for view in figure.views]),
        ("choice", "Show", [choice.name for choice in figure.choices]),
    ):
        if names:
            options = "".join(f'<option value="{i}">{escape(name)}</option>' for i, name in enumerate(names))
            parts.append(
                f'<label for="{key}-{kind}">{label}</label>'
                f'<select id="{key}-{kind}" data-{kind}="{key}">{options}</select>'
            )
    if any(view.plane is None for view in figure.views):
        turns = (("left", "←"), ("right", "→"), ("up", "↑"), ("down", "↓"))
        buttons = "".join(
            f'<button type="button" data-turn="{way}" data-figure="{key}" aria-label="Turn {way}">'
            f"{sign}</button>"
            for way, sign in turns
        )
        parts.append(f'<span class="turns" role="group" aria-label="Turn the scene">{buttons}</span>')
    return f'<div class="controls">{"".join(parts)}</div>' if parts else ""


def _link(file: Download) -> str:
    packed = f' data-packed="{escape(file.kind)}"' if file.packed else ""
    place = f'download="{escape(file.stored_name)}" href="{escape(file.uri)}"'
    return f"<a {place}{packed}>{escape(file.name)}</a>"


def _downloads(downloads: Iterable[Download], heading: str = "") -> str:
    links = "".join(_link(file) for file in downloads)
    if not links:
        return ""
    title = f"<span>{escape(heading)}</span>" if heading else '<span class="sr">Download</span>'
    return f'<p class="downloads">{title}{links}</p>'


def _plain(value: Any, key: str = "", *, canvas: bool = False) -> Any:
    """Return a figure's dictionaries in JSON's types; text that Plotly would read as markup is escaped.

    In 3-D scenes (``canvas``) text is drawn, not parsed: entities would show, so brackets change shape.
    """
    if isinstance(value, Mapping):
        parts = value.items()
        return {
            str(k): _plain(part, str(k), canvas=canvas or str(k).startswith("scene")) for k, part in parts
        }
    if isinstance(value, (list, tuple)):
        return [_plain(part, key, canvas=canvas) for part in value]
    if isinstance(value, str) and key in _FIGURE_TEXT:
        return value.translate(_ANGLES) if canvas else escape(value)
    return plain(value)


def _json(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files("palrnn.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    # browsers hash plain newlines
    return str(get_plotlyjs()).replace("\r\n", "\n")


@cache
def _packed() -> str:
    """Return Plotly as base64 of gzip, 2 of its 4.8 MB; the same bytes at any time."""
    return base64.b64encode(gzip.compress(_plotly().encode(), 9, mtime=0)).decode()
