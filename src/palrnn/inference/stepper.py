"""The filter, one row at a time: for data that arrive, and for forecasts from the latest state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_floats, as_int, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.inference.collectors import Steps
from palrnn.inference.config import FilterConfig, FilterSettings, filter_config
from palrnn.inference.forecasts import OF_ONE_MODEL, PARAMETERS, Forecast
from palrnn.inference.particle_filter import checked_model, engine_of, stream
from palrnn.inference.record import FilterDiedError, words_of
from palrnn.model import PALRNN, Surrogate
from palrnn.model.inputs import checked_inputs, offsets
from palrnn.model.palrnn import sampled_states


class Stepper:
    """The Rao-Blackwellised particle filter of ``model``, started at the row ``x0 (N,)``::

        stepper = palrnn.Stepper(model, x[0], particles=256, seed=0)
        for row in rows:                       # NaN means not observed
            surprise = -stepper.update(row)    # minus the log evidence of the row given those before
        stepper.forecast(100).band(0.9)

    With the same settings and the same rows it draws the same numbers as `rbpf`, and does the same sums in
    the same order: increments, ``log_evidence``, ``mean``, ``gate_probability`` and ``ess`` are those of the
    whole series to the last bit. Its memory does not grow with the number of rows.

    A driven model takes the row of inputs that belongs to each row: ``Stepper(model, x[0], inputs=s[0])`` and
    ``stepper.update(x[t], inputs=s[t])``, just as they stand in the file. ``s[t]`` acts on the step that
    leaves row t: it is remembered until the next row comes.
    """

    def __init__(
        self,
        model: PALRNN,
        x0: ArrayLike,
        config: FilterConfig | None = None,
        *,
        inputs: ArrayLike | None = None,
        **settings: Unpack[FilterSettings],
    ) -> None:
        self.config = filter_config(config, settings)
        self.model = checked_model(model)
        start = as_shape(x0, "x0", (model.drift.observed_dim,))
        self._latest = self._checked_row(inputs)
        pin_blas()
        engine = engine_of(model.drift, model)
        self._gate_probability = engine.DIAGNOSTICS["gate_probability"]
        self._cloud: Any = engine.Cloud(model, start, self.config, stream(self.config.seed))
        #: How many rows were taken, the first included.
        self.rows = 1
        #: The log evidence of all rows given the first: what `rbpf` calls ``log_evidence``.
        self.log_evidence = 0.0
        self._died = False

    def update(self, x: ArrayLike, *, inputs: ArrayLike | None = None) -> float:
        """Take the next row ``x (N,)``; return the log of its evidence given all rows before.

        ``inputs (K,)`` of a driven model are those of this row, and act on the step to the one after it.
        """
        row = as_floats(x, "x", allow_nan=True)
        if row.shape != (self.model.drift.observed_dim,):
            raise ValueError(f"x must have shape ({self.model.drift.observed_dim},), got {row.shape}")
        given, push = self._checked_row(inputs), offsets(self.model, self._latest)
        increment = math.nan if self._died else self._cloud.advance(self.rows - 1, row, push)
        if math.isnan(increment):
            self._died = True
            raise FilterDiedError.at(self.rows - 1, self.rows, self.config.particles)
        self.rows += 1
        self.log_evidence += increment
        self._latest = given
        return float(increment)

    def _checked_row(self, inputs: ArrayLike | None) -> Floats | None:
        """Return one row of inputs as ``(K,)``; None where the model takes none."""
        drift = self.model.drift
        if inputs is None or not drift.input_dim:
            return checked_inputs(drift, inputs, 1)
        return as_shape(inputs, "inputs", (drift.input_dim,))

    @property
    def mean(self) -> Floats:
        """The filtered mean of the state given all rows so far, ``(M,)``."""
        return np.asarray(self._cloud.mean)

    @property
    def gate_probability(self) -> Floats:
        """How likely each gate was open in the last transition, ``(P,)``; NaN before the first."""
        if self._cloud.codes is None:
            return np.full(self.model.drift.gated, np.nan)
        codes, weights = self._cloud.codes, self._cloud.weights
        ancestors = np.arange(len(weights), dtype=np.int32)[None]
        latest = Steps(self.rows - 2, weights[None], words_of(codes)[None], ancestors, codes.shape[1])
        return np.asarray(self._gate_probability(latest)[0])

    @property
    def ess(self) -> float:
        """The effective number of particles."""
        return float(self._cloud.ess)

    def forecast(
        self,
        steps: int,
        *,
        inputs: ArrayLike | None = None,
        paths: int = 200,
        seed: int = 0,
        drifts: Sequence[Surrogate] | None = None,
    ) -> Forecast:
        """Return sampled observations of the next ``steps`` rows, process and observation noise included.

        Each path starts from a state drawn from the belief given all rows so far. ``drifts``, draws from a
        posterior say, take turns in place of the model's own; the filter itself is that of the model.

        A driven model needs the ``inputs (steps, K)`` of the rows to come, one for each. The first step is
        driven by the inputs of the latest row, which the stepper has; those of the last row act on nothing.
        """
        length, count = as_int(steps, "steps", least=1), as_int(paths, "paths", least=1)
        rng = generator(as_int(seed, "seed", least=0), "forecast")
        model, drift = self.model, self.model.drift
        given = checked_inputs(drift, inputs, length)
        latest = self._latest
        driving = None if given is None or latest is None else np.vstack([latest, given[:-1]])
        chosen = rng.choice(self.config.particles, size=count, p=self._cloud.weights)
        beliefs = self._cloud.beliefs(chosen)
        starts = beliefs.mean + _drawn(beliefs.cov, rng.standard_normal(beliefs.mean.shape))
        found = np.full((count, length, drift.observed_dim), np.nan)
        for s in range(count):
            process = model.process.scaled(rng.standard_normal((length, drift.latent_dim)))
            observation = model.observation.scaled(rng.standard_normal((length, drift.observed_dim)))
            uniforms = rng.random((length, drift.gated))
            one = drift if not drifts else drifts[s % len(drifts)]
            pushes = offsets(one, driving)
            process = process if pushes is None else process + pushes
            states, _, _ = sampled_states(one, model.gate_std, starts[s], process, uniforms)
            ahead = model.observation_map(states[1:])
            found[s, : len(ahead)] = ahead + observation[: len(ahead)]
        return Forecast(found, OF_ONE_MODEL if not drifts else (*OF_ONE_MODEL, PARAMETERS))

    def __repr__(self) -> str:
        return (
            f"Stepper({self.rows} rows, log evidence {self.log_evidence:.6g}, "
            f"{self.ess:.0f} of {self.config.particles} particles effective)"
        )


def _drawn(cov: Floats, normals: Floats) -> Floats:
    """Return deviations with covariances ``cov (k, M, M)``, which may be singular."""
    values, vectors = np.linalg.eigh(cov)
    scaled = np.sqrt(np.maximum(values, 0.0)) * normals
    return np.asarray((vectors @ scaled[..., None])[..., 0])
