"""A report's page as a test sees it: elements, text and plots."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

from palrnn.report.document import report_page
from palrnn.report.page import page_html
from palrnn.report.view import Run

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Reader(HTMLParser):
    """Collects elements with their attributes, the text outside scripts, and tags left open."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.text, self.stack = "", list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack[-1] == tag, f"</{tag}> closes <{self.stack[-1]}>"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] == "script":
            self.scripts.append((self.elements[-1][1], data))
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def read(runs: list[Run]) -> Reader:
    reader = Reader()
    reader.feed(page_html(report_page(runs)))
    reader.close()
    return reader


def plots(reader: Reader) -> dict[str, dict[str, Any]]:
    return {
        attributes["data-plot"]: json.loads(text)
        for attributes, text in reader.scripts
        if "data-plot" in attributes
    }
