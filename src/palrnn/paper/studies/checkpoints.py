"""The trained models of all studies: loss, attractor and largest Lyapunov exponent of each."""

from __future__ import annotations

from palrnn.model import checkpoint_from_bytes
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Preset
from palrnn.paper.studies.evidence import EvidenceStudy, reference_tau
from palrnn.paper.study import Study, studies_in, study
from palrnn.paper.tables import Rows
from palrnn.sweeps import Store, Task

_COLUMNS = ("dstsp", "outside", "lyapunov", "lyapunov_stderr", "diverged_at")


@study("checkpoints", place=20)
class CheckpointsStudy(Study[None]):
    """The models that other studies need."""

    def tasks(self) -> list[Task]:
        """The training of all models, in order of need, then their invariants."""
        models = [checkpoint_task(self.preset, regime) for regime in all_regimes(self.preset)]
        return [*models, *(invariants_task(self.preset, model) for model in models)]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per trained model: its regime, its loss and its invariants as far as they are there."""
        rows = []
        for regime in all_regimes(self.preset):
            task = checkpoint_task(self.preset, regime)
            if store.has(task):
                found = store.result_or_empty(invariants_task(self.preset, task))
                loss = checkpoint_from_bytes(store.read(task)).training["recent_loss"]
                rows.append(regime._asdict() | {"loss": loss} | {name: found.get(name) for name in _COLUMNS})
        return {"checkpoints.csv": rows}


def all_regimes(preset: Preset) -> list[Regime]:
    """All models, each once: those of the evidence study, then the rest of its tau, then others by seed."""
    first = EvidenceStudy(preset).regimes() if EvidenceStudy.is_in(preset) else []
    tau = reference_tau(preset)
    others = [regime for other in studies_in(preset) for regime in other.regimes()]
    rest = sorted(others, key=lambda regime: (regime.tau != tau, regime.seed))
    return list(dict.fromkeys([*first, *rest]))
