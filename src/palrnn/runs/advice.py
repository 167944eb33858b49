"""What to try next, with numbers, where a verdict is not good."""

from __future__ import annotations

from palrnn.forcing import TrainConfig
from palrnn.invariants import Verdict
from palrnn.model import Surrogate

# sizes below which a larger model is worth a try, and how much of a short training is more
_LATENT, _GATED, _MORE, _MOST = 60, 40, 2, 200_000
_NOISE, _CLIP, _MEASURED, _LAGS, _ROUNDS = 0.05, 5.0, 20, 3, 16

_SEARCH = "or let palrnn search (palrnn.search in Python) try such settings by itself"
_LONGER = "a longer search: twice the minutes, or more rows"


def advice(
    verdict: Verdict, config: TrainConfig | None, drift: Surrogate, *, searched: bool = False
) -> tuple[str, ...]:
    """Return settings of training to change, the first first, given those that the model was trained with.

    Without ``config``, those that are not known to be so already. The last is a search; of a model that one
    came to (``searched``), which has tried all of these, a longer one.
    """
    causes = set(verdict.causes)
    if not causes:
        return ()
    if searched and causes != {"blind"}:
        return (_LONGER,)
    config = config or TrainConfig(latent_dim=drift.latent_dim, gated=drift.gated)
    more = "more rows to judge by (a larger test_fraction, a longer series), or fewer columns"
    if causes == {"blind"}:
        return (more,)  # nothing else speaks against the model
    found = []
    usual = TrainConfig().updates
    brief = config.updates < usual // 2
    if brief:
        # nothing else can be told from a training that was cut short
        found.append(f"updates = {usual:,}, the default (now {config.updates:,})")
    if drift.observed_dim == 1:
        found.append(f"one column is rarely enough: lags = {_LAGS} adds past values")
    if "diverges" in causes:
        if config.gradient_clip is None:
            found.append(f"gradient_clip = {_CLIP:g} (now none)")
        found.append(f"learning_rate = {config.learning_rate / 3:.2g} (now {config.learning_rate:g})")
    if causes & {"diverges", "leaves", "score", "exponent"} and config.tau > 1:
        found.append(f"tau = {max(1, config.tau // 2)} (now {config.tau})")
    if causes & {"rests", "cycle", "not chaotic"} and config.input_noise <= _NOISE:
        found.append(f"input_noise = {max(_NOISE, 2 * config.input_noise):g} (now {config.input_noise:g})")
    if causes & {"rests", "cycle", "leaves", "not chaotic"} and config.keep != "best":
        every = max(1, config.updates // _MEASURED)
        found.append(f'keep = "best" with evaluate_every = {every}, which prefers models that live')
    if causes & {"rests", "cycle"} and not config.polish and not drift.input_dim:
        found.append(f"polish = {_ROUNDS} (now 0), which trains on away from where runs end")
    if causes & {"score", "spectrum", "exponent", "cycle", "rests", "not chaotic"}:
        if config.latent_dim < _LATENT or config.gated < _GATED:
            sizes = max(_LATENT, config.latent_dim), max(_GATED, config.gated)
            found.append(
                f"latent_dim = {sizes[0]}, gated = {sizes[1]} (now {config.latent_dim}, {config.gated})"
            )
        if not brief and config.updates * _MORE <= _MOST:
            found.append(f"updates = {_MORE * config.updates:,} (now {config.updates:,})")
    if "spectrum" in causes and "score" not in causes:
        found.append("the same rate of sampling for what it learns and what judges it, if these differ")
    if "blind" in causes:
        found.append(more)
    found.append(f"another seed (now {config.seed})")
    found.append(_SEARCH)
    return tuple(found)
