"""`summary.json`: every claim of the paper beside our number, and our own findings, from the tables alone.

Numbers at a smaller scale never stand in for the paper's: at any other settings than those of the preset
`paper`, and where a study is not finished, the verdict is "cannot be compared".
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from palrnn.engine.files import write_bytes
from palrnn.paper.claim import AGREES, DIFFERS, INCOMPARABLE, Claim, Finding, Listing
from palrnn.paper.presets import Preset
from palrnn.paper.study import Study, studies_in
from palrnn.paper.tables import Tables, write_rows
from palrnn.sweeps.task import json_bytes


def write_summary(preset: Preset, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Write ``summary.json`` and the tables that follow from others; return the summary."""
    place, tables = Path(folder), Tables(folder)
    claims: list[Claim] = []
    findings: list[Finding] = []
    listings: list[Listing] = []
    for study in studies_in(preset):
        if study.name in tables:
            # read back as written, so that the summary depends on the tables alone
            write_rows(place, study.derived_tables(tables))
            claims += _comparable(study, tables)
            findings += study.findings(tables)
            listings += study.listings(tables)
    verdicts = [claim.verdict for claim in claims]
    summary: dict[str, Any] = {
        "scale": preset.scale,
        "settings_are_the_papers": preset.is_the_papers,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in (AGREES, DIFFERS, INCOMPARABLE)},
        "claims": [asdict(claim) for claim in claims],
        "findings": [asdict(finding) for finding in findings],
        "listings": [asdict(listing) for listing in listings],
        "computation": tables["computation"].to_dict("records") if "computation" in tables else [],
    }
    write_bytes(place / "summary.json", json_bytes(summary))
    return summary


def _comparable(study: Study[Any], tables: Tables) -> list[Claim]:
    """The claims of a study; where they cannot be compared, the rule says why."""
    claims = study.claims(tables)
    there, expected = study.row_counts(tables)
    reason = None
    if there < expected:
        reason = f"{there} of {expected} rows are there so far"
    elif not study.preset.is_the_papers:
        reason = f"these are the settings of scale {study.preset.scale}"
    return [
        claim if reason is None else replace(claim, verdict=INCOMPARABLE, rule=reason) for claim in claims
    ]
