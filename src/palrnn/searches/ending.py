"""The end of a search: its winner and the usual settings learn from all rows, and the better one is kept.

Candidates were judged by rows that they had not seen, which is fair and costs them these rows. At the end the
winner learns from all rows, for as long as its last rung took. So does a *rival*, the settings that
`reconstruct` would take, from the beginning: where a series does something only once, such as entering its
second lobe late, candidates had to be chosen by what they could not know, and a search would otherwise end
worse than one training without it. Both are then judged by all rows (`Parts.of_all_rows`). Rows that both
have learned from cannot tell who generalises, but they tell who lives, and whose free run goes where the
whole series does: the rival must be graded better there, or nearer by more than chance, to be kept instead.
"""

from __future__ import annotations

from palrnn.engine.progress import Progress, quiet
from palrnn.model import checkpoint_from_bytes
from palrnn.searches.judge import Judgement
from palrnn.searches.plan import Rung, spent_on
from palrnn.searches.result import Standing, compared
from palrnn.searches.space import Candidate
from palrnn.searches.work import final_task, judgement_task, rival_task
from palrnn.sweeps import Engine, Store, Task
from palrnn.sweeps import run as run_tasks

#: How much smaller the loss of the rival has to be: about what D_stsp of one model differs by between starts.
MARGIN = 0.25


def clearly_better(theirs: Judgement, ours: Judgement) -> bool:
    """Return whether ``theirs`` has the better grade or more life, or of equals the clearly smaller loss."""
    if theirs.key[:2] != ours.key[:2]:
        return theirs.key[:2] < ours.key[:2]
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
        found, words = (winner, "It was not trained further.") if dead else self._taught_all(winner, ends)
        rival = self._standing(usual, fresh, len(self.plan))
        if rival is not None:
            duel = [judgement_task(each.task, self.data) for each in (found, rival)]
            self._run(duel)
            if all(map(self.store.has, duel)):
                ours, theirs = (Judgement.from_dict(self.store.result(task)) for task in duel)
                found, more = self._better(found, rival, ours, theirs)
                words = f"{words} {more}"
        report(total, total, figures)
        return found, words

    def _better(
        self, found: Standing, rival: Standing, ours: Judgement, theirs: Judgement
    ) -> tuple[Standing, str]:
        usual = f"The usual settings, trained afresh for {self.plan[-1].updates:,} updates on all rows,"
        if clearly_better(theirs, ours):
            return rival, f"{usual} are kept instead: by all rows, the winner {compared(ours, theirs)}."
        losses = f"a loss of {theirs.loss:.2f} against {ours.loss:.2f}"
        return found, f"{usual} are not clearly better: by all rows, {theirs.grade}, {losses}."

    def _taught_all(self, winner: Standing, task: Task) -> tuple[Standing, str]:
        """Return the winner after its training on all rows, or as it was if it got worse, and which in words.

        It is judged on rows that it has seen then: enough to tell whether it is as good as it was.
        """
        rows = "all rows to train on, the validation rows among them"
        more = f"{self.plan[-1].updates:,} updates more on {rows}"
        found = self._standing(winner.candidate, task, winner.rung)
        if found is None:
            return winner, f"It is as it was: {more}, failed."
        before, after = winner.judgement, found.judgement
        worse = after.key[:2] > before.key[:2] or (after.grade == "not usable" and after.loss > before.loss)
        if found.checkpoint.training["diverged"] or worse:
            return winner, f"It is as it was: after {more}, it was {after.verdict}."
        return found, f"It had {more}."

    def _standing(self, candidate: Candidate, task: Task, rung: int) -> Standing | None:
        """Return what a task came to, None if it failed."""
        if not self.store.has(task):
            return None
        checkpoint = checkpoint_from_bytes(self.store.read(task), source=task.label)
        return Standing(candidate, rung, checkpoint, task)

    def _run(self, tasks: list[Task]) -> None:
        run_tasks(tasks, self.store, self.engine, retry_failed=True, close=False, progress=quiet)
