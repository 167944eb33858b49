"""The end of a search: its winner and the usual settings learn from all rows, and the better one is kept.

Candidates were judged by rows that they had not seen, which is fair and costs them these rows. At the end the
winner learns from all rows, for as long as its last rung took. So does a *rival* from the beginning, with the
settings that `reconstruct` would take: where a series does something only once, such as entering its second
lobe late, candidates had to be chosen by what they could not know. Both are then judged by all rows of the
longest trial (`Parts.of_all_rows`). Rows that both have learned from cannot tell who generalises, but they
tell who lives, and whose free run goes where the whole series does. The loss decides (`Judgement.loss`), by
more than chance; not the grade, whose floor is of stretches that may differ more than the two models do.
"""

from __future__ import annotations

import math

from palrnn.engine.progress import Progress, quiet
from palrnn.model import checkpoint_from_bytes
from palrnn.searches.judge import Judgement
from palrnn.searches.plan import Rung, spent_on
from palrnn.searches.result import Standing
from palrnn.searches.space import Candidate
from palrnn.searches.work import final_task, judgement_task, rival_task
from palrnn.sweeps import Engine, Store, Task
from palrnn.sweeps import run as run_tasks

#: How much smaller the loss of the rival has to be: about what D_stsp of one model differs by between starts.
MARGIN = 0.25


def clearly_better(theirs: Judgement, ours: Judgement) -> bool:
    """Return whether ``theirs`` has the clearly smaller loss: nearer to the data, fewer runs that end."""
    return theirs.loss < ours.loss - MARGIN


class Ending:
    """The last trainings of a search, from the rows in ``data``."""

    def __init__(self, store: Store, engine: Engine, data: Task, plan: list[Rung], dt: float | None) -> None:
        self.store, self.engine, self.data, self.plan, self.dt = store, engine, data, plan, dt

    def best(self, winner: Standing, usual: Candidate, report: Progress) -> tuple[Standing, str]:
        """Return the model to keep, of the ``winner`` or of the ``usual`` settings, and why in words.

        That of the usual settings counts as a rung after the last.
        """
        total, figures = spent_on(self.plan), {"rung": len(self.plan), "of": len(self.plan)}
        report(total - 2 * self.plan[-1].updates, total, figures)
        ends = final_task(winner.candidate, self.plan, self.data, self.dt)
        fresh = rival_task(usual, self.plan, self.data, self.dt)
        dead = winner.checkpoint.training["diverged"]
        self._run([fresh] if dead else [ends, fresh])
        found, words = (
            (winner, "The winner was not trained further.") if dead else self._taught_all(winner, ends)
        )
        kept, more = self._better(found, self._standing(usual, fresh, len(self.plan)))
        report(total, total, figures)
        return kept, f"{words} {more}"

    def _better(self, found: Standing, rival: Standing | None) -> tuple[Standing, str]:
        """Return which of the two is kept, and why in words."""
        usual = f"The usual settings, trained afresh for {self.plan[-1].updates:,} updates on all rows,"
        if rival is None or rival.checkpoint.training["diverged"]:
            return found, f"{usual} {'failed' if rival is None else 'diverged'}."
        if found.checkpoint.training["diverged"]:
            return rival, f"{usual} are kept instead."
        duel = [judgement_task(each.task, self.data) for each in (found, rival)]
        self._run([task for task in duel if self._judgement(task) is None])
        ours, theirs = map(self._judgement, duel)
        if ours is None or theirs is None:
            return found, f"{usual} could not be judged by all rows."
        better = clearly_better(theirs, ours)
        which = "are kept instead" if better else "are not clearly better"
        return (
            rival if better else found,
            f"{usual} {which}: by all rows {_scores(theirs)}; the winner {_scores(ours)}.",
        )

    def _taught_all(self, winner: Standing, task: Task) -> tuple[Standing, str]:
        """Return the winner after its training on all rows, or as it was if it got worse, and which in words.

        It is judged on rows that it has seen then: enough to tell whether it is as good as it was.
        """
        rows = "all rows to train on, the validation rows among them"
        more = f"{self.plan[-1].updates:,} updates more on {rows}"
        found = self._standing(winner.candidate, task, winner.rung)
        if found is None:
            return winner, f"The winner is as it was: {more}, failed."
        before, after = winner.judgement, found.judgement
        worse = after.key[:2] > before.key[:2] or (after.grade == "not usable" and after.loss > before.loss)
        if found.checkpoint.training["diverged"] or worse:
            return winner, f"The winner is as it was: after {more}, it was {after.verdict}."
        return found, f"The winner had {more}."

    def _standing(self, candidate: Candidate, task: Task, rung: int) -> Standing | None:
        """Return what a task came to, None if it failed."""
        if not self.store.has(task):
            return None
        checkpoint = checkpoint_from_bytes(self.store.read(task), source=task.label)
        return Standing(candidate, rung, checkpoint, task)

    def _judgement(self, task: Task) -> Judgement | None:
        """Return what a judgement came to, None if there is none; a damaged file, which goes, is none."""
        try:
            found = Judgement.from_dict(self.store.result(task)) if self.store.has(task) else None
            return found if found is None or math.isfinite(found.loss) else None
        except (ValueError, TypeError, KeyError):
            self.store.path(task).unlink()
            return None

    def _run(self, tasks: list[Task]) -> None:
        run_tasks(tasks, self.store, self.engine, retry_failed=True, close=False, progress=quiet)


def _scores(found: Judgement) -> str:
    alive = f"{found.alive} of {found.starts} runs move on"
    return f"D_stsp {found.dstsp:.2f}, D_H {found.spectrum_distance:.2f}, {alive}"
