"""`summary.json`: every claim of the paper beside our number, and our own findings, from the tables alone.

Numbers at a smaller scale never stand in for the paper's: at any other settings than those of the preset
`paper`, and where a study is not finished, the verdict is "cannot be compared".
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from palrnn.engine.files import write_bytes
from palrnn.experiments.claim import INCOMPARABLE, Claim
from palrnn.experiments.claims import attractor_claims, diagnostics_claims, evidence_claims, toy_claims
from palrnn.experiments.evidence import evidence_units
from palrnn.experiments.findings import Finding, coordinates_finding, floor_finding, gap_findings
from palrnn.experiments.gap import variant_regimes
from palrnn.experiments.gap_claims import fixed_q_rows, gap_claims
from palrnn.experiments.presets import Preset, load_preset, preset_in, stated
from palrnn.experiments.tables import read_table, write_table
from palrnn.experiments.task import json_bytes

_TABLES = ("toy", "gap", "evidence", "diagnostics", "attractor", "checkpoints", "floor", "computation")


def write_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Write ``summary.json`` and ``fixed_q.csv`` from a folder's tables; return the summary."""
    place, preset = Path(folder), preset_in(folder)
    tables = {name: table for name in _TABLES if (table := read_table(place, _file(name))) is not None}
    if "gap" in tables:
        write_table(place / "fixed_q.csv", fixed_q_rows(tables["gap"], preset.resamples))
        # as written, so that the summary depends on the tables alone
        fixed_q = read_table(place, "fixed_q.csv")
        assert fixed_q is not None
        tables["fixed_q"] = fixed_q
    claims = [_final(claim, reason) for claim, reason in _claims(tables, preset)]
    findings = _findings(tables, preset)
    summary: dict[str, Any] = {
        "scale": preset.scale,
        "settings_are_the_papers": _is_the_papers(preset),
        "verdicts": {verdict: sum(c.verdict == verdict for c in claims) for verdict in ("agrees", "differs")}
        | {INCOMPARABLE: sum(c.verdict == INCOMPARABLE for c in claims)},
        "claims": [claim.entry() for claim in claims],
        "findings": [finding.entry() for finding in findings],
        "computation": tables["computation"].to_dict("records") if "computation" in tables else [],
    }
    write_bytes(place / "summary.json", json_bytes(summary))
    return summary


def _claims(tables: dict[str, pd.DataFrame], preset: Preset) -> list[tuple[Claim, str | None]]:
    """Every claim that the tables speak to, with the reason why it cannot be compared, if there is one."""
    n = preset.resamples
    found: list[tuple[Claim, str | None]] = []
    for name, expected in _expected(preset).items():
        if name not in tables:
            continue
        table = tables[name]
        rows = len(table) if name != "gap" else int((table["variant"] == table["variant"].iloc[0]).sum())
        reason = None if _is_the_papers(preset) else f"these are the settings of scale {preset.scale}"
        if rows < expected:
            reason = f"{rows} of {expected} rows are there so far"
        if name == "toy":
            claims = toy_claims(table, n)
        elif name == "gap":
            claims = gap_claims(table, tables["fixed_q"], n)
        elif name == "evidence":
            claims = evidence_claims(table, n)
        else:
            claims = diagnostics_claims(table) if name == "diagnostics" else attractor_claims(table)
        found += [(claim, reason) for claim in claims]
    return found


def _findings(tables: dict[str, pd.DataFrame], preset: Preset) -> list[Finding]:
    findings = []
    if "gap" in tables:
        findings += gap_findings(
            tables["gap"], 3 * (preset.gap.length - 1), preset.evidence.tau, preset.resamples
        )
    if "floor" in tables and "checkpoints" in tables:
        findings.append(floor_finding(tables["floor"], tables["checkpoints"], preset.evidence.tau))
    if "evidence" in tables and "checkpoints" in tables:
        evidence = preset.evidence
        findings.append(
            coordinates_finding(tables["evidence"], tables["checkpoints"], evidence.tau, evidence.seed)
        )
    return findings


def _expected(preset: Preset) -> dict[str, int]:
    shown = preset.diagnostics
    return {
        "toy": preset.toy.gate_stds * preset.toy.seeds,
        "gap": len(variant_regimes(preset, preset.gap.variants[0])),
        "evidence": len(evidence_units(preset)),
        "diagnostics": 2 * len(shown.particles) * shown.length,
        "attractor": preset.attractor.steps,
    }


def _final(claim: Claim, reason: str | None) -> Claim:
    return claim if reason is None else replace(claim, verdict=INCOMPARABLE, rule=reason)


def _is_the_papers(preset: Preset) -> bool:
    return stated(preset) == stated(load_preset("paper"))


def _file(name: str) -> str:
    return "attractor.csv.gz" if name == "attractor" else f"{name}.csv"
