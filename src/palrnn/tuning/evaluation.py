"""Is it better, and is it still the same dynamics? Evidence on held-out windows, and invariants of rollouts.

Evidence and invariants are two questions, which is the point: a model can gain the first and lose the second.
Invariants are those of the hard-gated deterministic rollout (the paper's) and of a sampled rollout with the
model's own gate and process noise. D_stsp does not change under an affine map of each coordinate, because its
box and bins follow the reference; it is therefore the raw-coordinate value although everything here is
standardised.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from palrnn.engine.checks import Floats, as_floats, as_instance, as_series, as_shape
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import kernel_seed
from palrnn.inference import FilterDiedError, windowed_evidence
from palrnn.invariants import quantities_of_interest
from palrnn.model import PALRNN, Surrogate
from palrnn.model.inputs import checked_inputs
from palrnn.tuning.config import SAEMConfig


@dataclass(frozen=True)
class RolloutInvariants:
    """D_stsp of a rollout, the fraction of it outside the reference's box, its largest Lyapunov exponent.

    ``diverged_at`` is the step at which the rollout left every bound (None: it did not). Such a rollout is
    infinitely far away: D_stsp is infinite, all of it outside, and the exponent NaN.
    """

    dstsp: float
    outside: float
    lyapunov: float
    lyapunov_error: float
    diverged_at: int | None


@dataclass(frozen=True)
class HeldOutEvaluation:
    """Held-out evidence per step and dimension with its standard error over windows, and both sets of
    invariants.

    A held-out window that is impossible under every particle makes the evidence -inf.
    """

    evidence: float
    evidence_stderr: float
    hard: RolloutInvariants | None
    sampled: RolloutInvariants | None

    def row(self) -> dict[str, float]:
        """Return the figures by name, for a table; what was not evaluated is NaN."""
        row = {"heldout_evidence": self.evidence, "heldout_stderr": self.evidence_stderr}
        for prefix, found in (("", self.hard), ("sampled_", self.sampled)):
            if found is not None:
                row |= {
                    prefix + name: math.nan if v is None else float(v) for name, v in asdict(found).items()
                }
        return row


def heldout_evaluation(
    model: PALRNN,
    config: SAEMConfig,
    *,
    heldout: Floats | None = None,
    reference: Floats | None = None,
    heldout_inputs: Floats | None = None,
    reference_inputs: Floats | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> HeldOutEvaluation:
    """Return evidence on held-out windows ``(K, L + 1, N)`` and invariants against ``reference (T, N)``.

    All in the model's standardised coordinates. Rollouts start at the first row of the reference that has no
    gap. The windows and all random streams depend on ``seed`` only, so that models can be compared. A driven
    model needs the inputs of the windows, ``(K, L + 1, inputs)``, and of the reference.
    """
    as_instance(model, "model", PALRNN), as_instance(config, "config", SAEMConfig)
    dim = model.drift.observed_dim
    if heldout is not None:
        heldout = as_floats(heldout, "heldout", allow_nan=True)
        if heldout.ndim != 3 or heldout.shape[0] < 1 or heldout.shape[1:] != (config.length + 1, dim):
            raise ValueError(f"heldout must be (K, {config.length + 1}, {dim}), got {heldout.shape}")
    if reference is not None:
        reference = as_series(reference, "reference", dim=dim, allow_nan=True)
    for name, data, given in (
        ("heldout", heldout, heldout_inputs),
        ("reference", reference, reference_inputs),
    ):
        if given is not None and data is None:
            raise ValueError(f"{name}_inputs must come with {name}, which is None")
        if data is not None and (given is None or not model.drift.input_dim):
            checked_inputs(model, given, data.shape[-2], f"{name}_inputs")
        elif data is not None and given is not None:
            as_shape(given, f"{name}_inputs", (*data.shape[:-1], model.drift.input_dim))
    evidence, stderr, hard, sampled = math.nan, math.nan, None, None
    if heldout is not None:
        evidence, stderr = _evidence(model, config, heldout, heldout_inputs, kernel_seed(seed, 2), threads)
    if reference is not None:
        hard = invariants(model.drift, reference, config, inputs=reference_inputs)
        sampled = invariants(model, reference, config, inputs=reference_inputs, seed=kernel_seed(seed, 3))
    return HeldOutEvaluation(evidence, stderr, hard, sampled)


def _evidence(
    model: PALRNN,
    config: SAEMConfig,
    heldout: Floats,
    inputs: Floats | None,
    seed: int,
    threads: int | None,
) -> tuple[float, float]:
    try:
        found = windowed_evidence(
            model,
            list(heldout),
            config.length,
            config.filter_config,
            inputs=None if inputs is None else list(inputs),
            windows=min(config.heldout_windows, len(heldout)),
            seed=seed,
            threads=threads,
            progress=quiet,
        )
    except FilterDiedError:
        return -math.inf, math.nan
    return found.mean, found.stderr


def invariants(
    model: Surrogate | PALRNN,
    reference: Floats,
    config: SAEMConfig,
    *,
    inputs: Floats | None = None,
    seed: int = 0,
) -> RolloutInvariants:
    """Return the invariants of the hard-gated rollout of a drift, or of a sampled one of a `PALRNN`."""
    steps, discard = config.rollout_steps - config.rollout_discard, config.rollout_discard
    run = quantities_of_interest(
        model, reference, inputs=inputs, steps=steps, discard=discard, dt=config.dt, seed=seed
    )
    found = run.numbers()
    known = config.reference_lyapunov
    error = math.nan if known is None else found["lyapunov"] - known
    return RolloutInvariants(found["dstsp"], found["outside"], found["lyapunov"], error, run.diverged_at)
