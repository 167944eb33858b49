"""What happened during training, update by update."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.tables import write_table

#: The columns of history.csv that an `Evaluation` fills, in the order of its fields.
MEASURED = ("dstsp", "outside", "lyapunov", "alive")
_ENDED, _SAME = 10.0, 0.3


@dataclass(frozen=True)
class Evaluation:
    """The free-running model after ``update`` updates, measured on held-out data.

    ``dstsp`` in nats and the fraction ``outside`` of generated points outside the reference's box; the
    largest Lyapunov exponent per unit of time. A model that diverges has ``dstsp = inf`` and ``lyapunov =
    nan``. ``alive`` is the part of several starts from which a long run moves on (`viability`), NaN where
    that was not looked at.
    """

    update: int
    dstsp: float
    outside: float
    lyapunov: float
    alive: float = math.nan

    @property
    def score(self) -> float:
        """What the best model is chosen by: D_stsp, plus 10 nats for the part of the starts that ends.

        That is about the mean over starts in the long run, since a run at rest has a D_stsp of about 10.
        """
        return self.dstsp + (0.0 if math.isnan(self.alive) else _ENDED * (1.0 - self.alive))


@dataclass(frozen=True, eq=False)
class History:
    """Loss, gradient norm (before clipping), learning rate, forcing strength and seconds of each update."""

    loss: Floats
    gradient_norm: Floats
    learning_rate: Floats
    alpha: Floats
    seconds: Floats
    evaluations: tuple[Evaluation, ...] = ()

    def __len__(self) -> int:
        return len(self.loss)

    def recent_loss(self, updates: int = 1000) -> float:
        """Return the mean loss of the last updates; a single batch says little."""
        return float(np.mean(self.loss[-updates:]))

    @property
    def best(self) -> Evaluation | None:
        """The latest evaluation whose `Evaluation.score` is as low as any, within 0.3 nats.

        That is what the score of a run changes by with its start, and later models have had more training.
        """
        lowest, found = math.inf, None
        for each in self.evaluations:
            if found is None or each.score <= lowest + _SAME:
                found = each
            lowest = min(lowest, each.score)
        return found

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per update; the columns of evaluations are empty where there was none."""
        header = ("update", "loss", "gradient_norm", "learning_rate", "alpha", "seconds")
        columns = (self.loss, self.gradient_norm, self.learning_rate, self.alpha, self.seconds)
        measured = {e.update: [f"{getattr(e, name):.6g}" for name in MEASURED] for e in self.evaluations}
        rows = (
            (i, *(f"{v:.7g}" for v in row), *measured.get(i, [""] * len(MEASURED)))
            for i, row in enumerate(zip(*(column.tolist() for column in columns), strict=True), start=1)
        )
        write_table(path, (*header, *MEASURED), rows)

    def __repr__(self) -> str:
        if not len(self):
            return "History(no updates)"
        best = (
            "" if self.best is None else f", best D_stsp {self.best.dstsp:.4g} at update {self.best.update}"
        )
        loss, seconds = self.recent_loss(), self.seconds.sum()
        return f"History({len(self)} updates, recent loss {loss:.4g}, {seconds:.1f} s{best})"
