"""`SearchResult`: the best model of a search, what else was tried, and why this one won."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from palrnn.engine.display import Display
from palrnn.engine.plain import plain
from palrnn.forcing import TrainConfig
from palrnn.invariants import Verdict
from palrnn.model import Checkpoint
from palrnn.runs import Reconstruction
from palrnn.searches.judge import Judgement
from palrnn.searches.plan import Rung
from palrnn.searches.space import Candidate
from palrnn.sweeps import Task

#: The columns of the table, as in table.csv.
COLUMNS = (
    *("rank", "candidate", "rung", "updates", "grade", "alive", "starts"),
    *("dstsp", "dstsp_floor", "spectrum_distance", "spectrum_floor", "rough", "loss", "error"),
    *("family", "latent_dim", "gated", "forcing", "learning_rate", "input_noise", "gradient_clip"),
    *("optimizer", "lags", "delay", "seed", "verdict"),
)


@dataclass(frozen=True, eq=False)
class SearchResult(Display):
    """What a search found. It shows itself in a notebook; ``to_frame`` gives the table.

    - ``best``: the winner, with which everything can be done that `reconstruct`'s result can do.
    - ``table``: a row (a dictionary of plain values) for each candidate, the best first, ready for a data
      frame; runs start at validation rows, from which only the usual settings, where they were kept in the
      end (in a rung after the last), have learned, and D_stsp compares them with all rows to train on.
    - ``why``: why the winner won, in words.
    - ``verdict``: what the winner comes to on the held-out part, which nothing was chosen by.
    - ``updates``: the budget, in updates of all candidates together.
    """

    best: Reconstruction
    table: list[dict[str, Any]]
    why: str
    verdict: Verdict
    updates: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        found = {"verdict": self.verdict.to_dict(), "why": self.why, "updates": self.updates}
        values: dict[str, Any] = plain(found | {"table": self.table})
        return values

    def heading(self) -> str:
        """Return what the winner comes to."""
        return f"Search: the best of {len(self.table)} candidates is {self.verdict}"

    def facts(self) -> list[tuple[str, str]]:
        """Return why it won, and the best candidates."""
        best = [(f"candidate {row['candidate']}", words(row).partition(".")[2]) for row in self.table[:5]]
        return [("why", self.why), ("updates", f"{self.updates:,} of all together"), *best]

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each candidate, the best first."""
        return self.table

    def picture(self) -> str:
        """Return a free run of the winner on the data."""
        return self.best.picture()

    def __repr__(self) -> str:
        return f"SearchResult({self.verdict}; {len(self.table)} candidates, {self.best!r})"

    def __str__(self) -> str:
        shown = [f"held-out part: {self.verdict}", self.why, *(words(row) for row in self.table[:5])]
        if len(self.table) > 5:
            shown.append(f"... and {len(self.table) - 5} more")
        return "\n".join(shown)


@dataclass(frozen=True, eq=False)
class Standing:
    """How far a candidate came: its last rung, and the checkpoint with its judgement there, by which task."""

    candidate: Candidate
    rung: int
    checkpoint: Checkpoint
    task: Task

    @property
    def judgement(self) -> Judgement:
        """What it came to."""
        return Judgement.from_dict(self.checkpoint.training["judgement"])

    @property
    def config(self) -> TrainConfig:
        """The settings of its last rung."""
        return TrainConfig.stored(self.checkpoint.training["config"])

    @property
    def key(self) -> tuple[Any, ...]:
        """What candidates of a rung are sorted by; equals keep the order in which they were drawn."""
        return (*self.judgement.key, self.candidate.number)

    def row(self, rank: int) -> dict[str, Any]:
        """Return its row of the table."""
        found, config = self.judgement, self.config
        values: dict[str, Any] = found.to_dict() | {
            "rank": rank,
            "candidate": self.candidate.number,
            "rung": self.rung + 1,
            "updates": self.checkpoint.training["updates"],
            "loss": found.loss,
            "family": config.family,
            "latent_dim": self.checkpoint.drift.latent_dim,
            "gated": self.checkpoint.drift.gated,
            "forcing": repr(config.forcing),
            "learning_rate": config.learning_rate,
            "input_noise": config.input_noise,
            "gradient_clip": config.gradient_clip,
            "optimizer": config.optimizer,
            "lags": self.candidate.lags,
            "delay": self.candidate.delay if self.candidate.lags > 1 else None,
            "seed": config.seed,
            "verdict": found.verdict,
        }
        return {name: values[name] for name in COLUMNS}


def ranked(standings: list[Standing]) -> list[Standing]:
    """Return candidates with the best first: those that came furthest before the others."""
    return sorted(standings, key=lambda each: (-each.rung, each.key))


def words(row: dict[str, Any]) -> str:
    """Return a row as a line."""
    lags = f", {row['lags']} lags {row['delay']} apart" if row["lags"] > 1 else ""
    return (
        f"{row['rank']:>4}. {row['grade']:<10} D_stsp {row['dstsp']:.2f} (floor {row['dstsp_floor']:.2f}), "
        f"D_H {row['spectrum_distance']:.2f}, {row['alive']}/{row['starts']} alive: {row['family']} "
        f"M={row['latent_dim']} P={row['gated']}, {row['forcing']}, rate {row['learning_rate']:g}, noise "
        f"{row['input_noise']:g}, clip {row['gradient_clip']}{lags}; {row['updates']:,} updates"
    )


def reasons(order: list[Standing], plan: list[Rung]) -> str:
    """Return why the first of ``order`` won, in words."""
    winner, final = order[0], [each for each in order if each.rung == len(plan) - 1]
    found = winner.judgement
    counts = Counter(each.judgement.grade for each in final)
    grades = ", ".join(
        f"{counts[grade]} {grade}" for grade in ("good", "fair", "not usable") if counts[grade]
    )
    noise = ", both of runs with noise as in the data" if found.noisy else ""
    flow = f"; its exponents of map and flow differ by {found.rough:.0%}" if 0.0 < found.rough < 1.0 else ""
    against = f" Against it: {'; '.join(found.reasons)}." if found.reasons else ""
    said = [
        f"Candidate {winner.candidate.number} won. From the validation rows it is {found.grade}: "
        f"{found.alive} of {found.starts} runs move on for {found.steps:,} steps, D_stsp is "
        f"{found.dstsp:.2f} (floor {found.dstsp_floor:.2f}) and D_H {found.spectrum_distance:.2f} (floor "
        f"{found.spectrum_floor:.2f}){noise}{flow}.{against}",
        f"{len(order)} candidates were tried, and {len(final)} of them trained to the end, for "
        f"{plan[-1].total:,} updates each: {grades}.",
    ]
    if len(final) > 1:
        said.append(
            f"The runner-up, candidate {final[1].candidate.number}, {_behind(final[1].judgement, found)}."
        )
    return " ".join(said)


def _behind(second: Judgement, first: Judgement) -> str:
    """Return where ``second`` is behind ``first``: the first thing in which they differ."""
    if second.grade != first.grade:
        return f"is {second.verdict}"
    if second.key[1] != first.key[1]:
        return f"is {second.grade}, too, but {second.ended} of its {second.starts} runs end"
    if second.loss == first.loss:
        return f"scores the same, and errs more ten steps ahead: {second.error:.2g} against {first.error:.2g}"
    scores = f"D_stsp {second.dstsp:.2f}, D_H {second.spectrum_distance:.2f}"
    losses = f"a loss of {second.loss:.2f} against {first.loss:.2f}"
    return f"is {second.grade}, too, and scores worse: {scores}, {losses}"
