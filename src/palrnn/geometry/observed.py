"""The curvature that the marginal likelihood sees: filter, smooth, and apply Louis' identity."""

from __future__ import annotations

import warnings
from typing import Unpack

from numpy.typing import ArrayLike

from palrnn.engine.checks import as_instance
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.geometry.config import InformationConfig, InformationSettings
from palrnn.geometry.exact import exact_information
from palrnn.geometry.information import ObservedInformation
from palrnn.geometry.sampled import sampled_information
from palrnn.inference import FewPathsWarning
from palrnn.inference.particle_filter import checked_series
from palrnn.model import PALRNN
from palrnn.model.inputs import checked_inputs

# different particles at the narrowest place below which the switching part is a guess: an error of 45 %
_FEW = 10


def observed_information(
    model: PALRNN,
    x: ArrayLike,
    config: InformationConfig | None = None,
    *,
    inputs: ArrayLike | None = None,
    progress: Progress | None = quiet,
    **settings: Unpack[InformationSettings],
) -> ObservedInformation:
    """Return the observed information of the drift on a segment ``x (T, N)`` (Alg. rbpf-louis).

    With ``states="exact"``, the default, gate paths are sampled and everything given a path is exact; with
    ``states="sampled"`` states are sampled, too, as in the paper. The other settings are those of
    `InformationConfig`, given as keywords, as a ``config``, or as a ``config`` with some of them changed;
    ``InformationConfig.paper()`` is the paper's estimator. NaN in ``x[1:]`` means not observed. A driven
    model needs its ``inputs (T, K)``, and the entries of C are among its parameters, the last ones.

    Warns with `FewPathsWarning` where nearly all paths come from a few particles of the filter.
    """
    chosen = InformationConfig() if config is None else as_instance(config, "config", InformationConfig)
    chosen = chosen.changed(**settings) if settings else chosen
    series = checked_series(model, x)
    given = checked_inputs(model, inputs, len(series))
    estimate = exact_information if chosen.states == "exact" else sampled_information
    with listening(progress, "observed information") as report:
        found = estimate(model, series, chosen, report, given)
    if model.drift.gated and found.distinct.min() < min(_FEW, chosen.paths):
        fewest, step = int(found.distinct.min()), int(found.distinct.argmin())
        message = (
            f"at step {step} the {len(found.filtered) * chosen.paths} gate paths pass through {fewest} "
            "different particles: what varies over them comes out too small; take more passes or particles"
        )
        warnings.warn(message, FewPathsWarning, stacklevel=2)
    return found
