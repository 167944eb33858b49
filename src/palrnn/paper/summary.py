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
from palrnn.paper.claim import AGREES, DIFFERS, INCOMPARABLE, Claim, Finding, Listing, Rival
from palrnn.paper.presets import Preset
from palrnn.paper.study import Study, studies_in
from palrnn.paper.tables import Tables, write_rows
from palrnn.sweeps.task import json_bytes


def write_summary(preset: Preset, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Write ``summary.json`` and the tables that follow from others; return the summary."""
    place, tables = Path(folder), Tables(folder)
    claims: list[Claim] = []
    by_study: dict[str, list[Claim]] = {}
    rivals: list[Rival] = []
    findings: list[Finding] = []
    listings: list[Listing] = []
    for study in studies_in(preset):
        if study.name in tables:
            # read back as written, so that the summary depends on the tables alone
            write_rows(place, study.derived_tables(tables))
            by_study[study.name] = _comparable(study, tables)
            claims += by_study[study.name]
            findings += study.findings(tables)
            listings += study.listings(tables)
            rival = study.rival(tables)
            rivals += [rival] if rival is not None else []
    summary: dict[str, Any] = {
        "scale": preset.scale,
        "settings_are_the_papers": preset.is_the_papers,
        "verdicts": _verdicts(claims),
        # where nothing is compared with the paper, there is nothing to count again
        "rivals": [rival_verdicts(rival, by_study) for rival in rivals if rival.study in by_study]
        if preset.is_the_papers
        else [],
        "claims": [asdict(claim) for claim in claims],
        "findings": [asdict(finding) for finding in findings],
        "listings": [asdict(listing) for listing in listings],
        "computation": tables["computation"].to_dict("records") if "computation" in tables else [],
    }
    write_bytes(place / "summary.json", json_bytes(summary))
    return summary


def rival_verdicts(rival: Rival, by_study: dict[str, list[Claim]]) -> dict[str, Any]:
    """Verdicts on all claims, with those of one study by another reading."""
    replaced = by_study | {rival.study: rival.claims}
    claims = [claim for some in replaced.values() for claim in some]
    return {"reading": rival.reading, "study": rival.study, "verdicts": _verdicts(claims)}


def _verdicts(claims: list[Claim]) -> dict[str, int]:
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in (AGREES, DIFFERS, INCOMPARABLE)}


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
