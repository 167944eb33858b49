"""`Dataset`: what any series becomes before anything is learned from it.

One preparation for Python and the command line: the source becomes trials of observed columns, the last part
(or the last of several trials) is held out, each part is embedded in its own past, and all of it is
standardised by the mean and deviation of the part to train on. Whatever is chosen from the data (the delay,
the forcing interval) is chosen from that part, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data.embedding import suggest_lags, usual_delay
from palrnn.data.inputs import DatasetInputs, beside, names_or_arrays, prepared_inputs, split_inputs
from palrnn.data.source import (
    IN_MEMORY,
    UNNAMED,
    DataSettings,
    Source,
    dataset_name,
    effective,
    embedded,
    first_gap,
    is_system,
    recorded,
    refuse_foreign,
    series_name,
    simulated,
    split_source,
)
from palrnn.data.standardize import Standardizer
from palrnn.data.systems import System
from palrnn.data.table import SeriesError
from palrnn.data.timescale import suggest_tau
from palrnn.engine.checks import Floats, as_instance, as_int, as_trials
from palrnn.engine.text import past_names, printable, quoted


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A prepared series; make one with `Dataset.prepare`.

    - ``trials``: the raw trials, past values included where ``lags > 1``, each ``(T_k, lags * N)``.
    - ``training``: trials to train on, and ``heldout`` the series to judge by, standardised; gaps are NaN.
    - ``reference``: the held-out part in raw units. ``truth``: the longest trial to train on in raw units,
      without observation noise where it was simulated with some.
    - ``columns``: the names of the N observed coordinates; ``left_out``: columns that are not used, and why.
    - ``dt``: time per step, None if not known; ``dt_from`` says where it comes from, or why it is not known.
    - ``system``: the true system where it is known, ``lyapunov`` its largest exponent where that is known.
    - ``settings``: plain values from which `from_settings` prepares the same again.
    - ``inputs``: what drives it, prepared likewise (`DatasetInputs`); None for an autonomous system.
    """

    name: str
    source: str
    trials: tuple[Floats, ...]
    training: list[Floats]
    heldout: Floats
    heldout_trials: list[Floats]
    reference: Floats
    truth: Floats
    standardizer: Standardizer
    columns: tuple[str, ...]
    left_out: dict[str, str]
    dt: float | None
    dt_from: str
    lags: int
    delay: int
    system: System | None
    process_std: float
    lyapunov: float | None
    first_gap: str | None
    settings: dict[str, Any]
    inputs: DatasetInputs | None = None

    @classmethod
    def prepare(
        cls,
        x: Any,
        *,
        columns: Sequence[str] | None = None,
        time: str | None = None,
        trial: str = "trial",
        inputs: Any = None,
        dt: float | None = None,
        lags: int | None = None,
        delay: int | None = None,
        test_fraction: float = 0.2,
        name: str | None = None,
        system: str | None = None,
        lyapunov: float | None = None,
        steps: int | None = None,
        process_std: float | None = None,
        observation_std: float | None = None,
        data_seed: int | None = None,
        parameters: Mapping[str, float] | None = None,
        standardizer: Standardizer | None = None,
        input_standardizer: Standardizer | None = None,
    ) -> Dataset:
        """Prepare ``x``: a series ``(T, N)``, a list of trials, a data frame, a file, or a system by name.

        - ``columns``: of a table, the columns to use, by name (None: all but time, trial and counting
          columns); of an array, names for its columns.
        - ``time``: the column that tells the time, by name (None: the first one, if it looks like a time).
          Rows must be in the order of time. Where it or the index of a data frame is even, it gives ``dt``.
          Given both, rows are put on a grid of step ``dt``, with gaps where nothing was seen, and are not
          interpolated (`load_series`). The index of a data frame goes by its name, or "index".
        - ``trial``: the column that tells trials apart.
        - ``inputs``: external inputs, which drive the system, one row for each row of ``x``: columns of the
          table by name, which are then not observed, or an array ``(T, K)`` (a list of them for trials).
        - ``dt``: time per step. Without it rates such as Lyapunov exponents are per step.
        - ``lags``, ``delay``: with ``lags > 1`` past values become further coordinates (`delay_embed`).
          ``lags=None`` is 1 for several columns or with inputs; one column alone is rarely enough, and gets
          as many as tell its future (`suggest_lags`). ``delay=None`` takes two thirds of the time over
          which the part to train on remembers itself (`suggest_tau`).
        - ``test_fraction``: the last part of a series, held out. Of several trials the last one is held out.
        - ``system``: the system that ``x`` was simulated from, so that floors and true exponents can be
          computed; ``lyapunov``: the largest true exponent where it is known otherwise.
        - ``steps``, ``process_std``, ``observation_std``, ``data_seed``, ``parameters``: of a simulated
          system (defaults 100,000, 0, 0, 0, the usual ones). Observation noise is on the part to train on.
        - ``standardizer``, ``input_standardizer``: those of a model that exists already, instead of fitting.

        Gaps (NaN) pass through; `complete` refuses them, for what cannot do with them.
        """
        given = {name: value for name, value in locals().items() if name in DataSettings.model_fields}
        names, drives = names_or_arrays(inputs)
        if isinstance(columns, str) or not isinstance(columns, (Iterable, type(None))):
            raise ValueError(f"columns must be a sequence of names, got {quoted(columns)}")
        if not isinstance(parameters, (Mapping, type(None))):
            raise ValueError(f"parameters must be numbers by name, got {quoted(parameters)}")
        given |= {"series": series_name(x), "inputs": names if drives is None else IN_MEMORY}
        given["columns"] = None if columns is None else tuple(map(str, columns))
        given["parameters"] = None if parameters is None else dict(parameters)
        settings = DataSettings(**given)
        return cls._prepared(x, settings, standardizer, drives, input_standardizer)

    @classmethod
    def from_settings(
        cls,
        settings: Mapping[str, Any],
        x: Any = None,
        *,
        inputs: Any = None,
        standardizer: Standardizer | None = None,
        input_standardizer: Standardizer | None = None,
    ) -> Dataset:
        """Prepare again what has these ``settings``; what was in memory must be given: ``x``, ``inputs``."""
        known = DataSettings(**settings)
        if x is None:
            if known.series == IN_MEMORY:
                raise ValueError("x must be given: the settings are of data that were in memory")
            x = known.series
        if (inputs is not None) != (known.inputs == IN_MEMORY):
            there = "must be given: the settings are of inputs that were in memory"
            raise ValueError(
                f"inputs {there}" if inputs is None else "inputs must be None: the settings have them"
            )
        return cls._prepared(x, known, standardizer, inputs, input_standardizer)

    @classmethod
    def from_parts(
        cls,
        training: ArrayLike | Sequence[ArrayLike],
        heldout: ArrayLike | Sequence[ArrayLike],
        *,
        training_inputs: ArrayLike | Sequence[ArrayLike] | None = None,
        heldout_inputs: ArrayLike | Sequence[ArrayLike] | None = None,
        reference: ArrayLike | None = None,
        standardizer: Standardizer | None = None,
        input_standardizer: Standardizer | None = None,
        dt: float | None = None,
        name: str = UNNAMED,
        system: System | None = None,
    ) -> Dataset:
        """Return a dataset of raw trials that are split already; ``reference`` is None for the held-out part.

        ``training_inputs`` and ``heldout_inputs`` are those of each trial, where something drives the system.
        It has no settings that could prepare it again, beyond ``series = "in memory"``.
        """
        seen = as_trials(training, "training", allow_nan=True)
        held = as_trials(heldout, "heldout", dim=seen[0].shape[1], allow_nan=True)
        columns = tuple(f"x{i + 1}" for i in range(seen[0].shape[1]))
        settings = DataSettings(series=IN_MEMORY, name=name, dt=dt, columns=columns)
        source = Source([*seen, *held], columns, {}, dt, "given" if dt else "", first_gap(seen), system)
        truth = held[-1] if reference is None else as_trials(reference, "reference", dim=len(columns))[0]
        driven = None
        if (training_inputs is None) != (heldout_inputs is None):
            raise ValueError("training_inputs and heldout_inputs must come together, one of them is None")
        if training_inputs is not None:
            seen_s = beside(training_inputs, seen, "training_inputs")
            held_s = beside(heldout_inputs, held, "heldout_inputs")
            names = tuple(f"s{k + 1}" for k in range(seen_s[0].shape[1]))
            driven = prepared_inputs(names, seen_s, held_s, input_standardizer)
            settings = settings.changed(inputs=IN_MEMORY)
        return cls._of_parts(source, settings, 1, seen, seen, held, truth, standardizer, driven)

    @classmethod
    def _prepared(
        cls,
        x: Any,
        settings: DataSettings,
        standardizer: Standardizer | None,
        inputs: Any,
        input_standardizer: Standardizer | None,
    ) -> Dataset:
        """Return the dataset with these settings; what they leave open is chosen and written into them."""
        refuse_foreign(x, settings)
        if is_system(x):
            settings = effective(settings)
            source = simulated(settings)
        else:
            source = recorded(x, settings, inputs)
            settings = settings.changed(columns=source.columns, dt=source.dt)
        seen, held, clean = split_source(source, settings.test_fraction)
        lags, delay = _past(seen, settings, driven=source.inputs is not None)
        settings = settings.changed(lags=lags)
        if lags > 1:
            settings = settings.changed(delay=delay)
            seen, clean = ([embedded(part, lags, delay) for part in parts] for parts in (seen, clean))
            held = embedded(held, lags, delay)
        driven = None
        if source.inputs is not None:
            parts = split_inputs(source.inputs, settings.test_fraction, (lags - 1) * delay)
            driven = prepared_inputs(source.input_columns, parts[0], [parts[1]], input_standardizer)
        return cls._of_parts(source, settings, delay, seen, clean, [held], held, standardizer, driven)

    @classmethod
    def _of_parts(
        cls,
        source: Source,
        settings: DataSettings,
        delay: int,
        seen: list[Floats],
        clean: list[Floats],
        held: list[Floats],
        reference: Floats,
        standardizer: Standardizer | None,
        inputs: DatasetInputs | None = None,
    ) -> Dataset:
        scale = standardizer
        if scale is None:
            scale = Standardizer.fit(np.concatenate(seen))
        elif as_instance(scale, "standardizer", Standardizer).dim != seen[0].shape[1]:
            raise ValueError(f"standardizer must have {seen[0].shape[1]} columns, as x has, got {scale.dim}")
        flow, process_std = source.system, settings.process_std or 0.0
        known = settings.lyapunov
        if known is None and flow is not None and process_std == 0:
            known = flow.lyapunov
        heldout = [scale.transform(part) for part in held]
        whole, (lags, _) = source.trials, settings.past
        if lags > 1:
            whole = [embedded(part, lags, delay) for part in whole]
        return cls(
            name=settings.name or dataset_name(settings.series),
            source=printable(settings.series) + (", simulated" if source.clean is not None else ""),
            trials=tuple(whole),
            training=[scale.transform(part) for part in seen],
            heldout=heldout[-1],
            heldout_trials=heldout,
            reference=reference,
            truth=max(clean, key=len),
            standardizer=scale,
            columns=source.columns,
            left_out=source.left_out,
            dt=source.dt,
            dt_from=source.dt_from,
            lags=lags,
            delay=delay,
            system=flow,
            process_std=process_std,
            lyapunov=known,
            first_gap=source.first_gap,
            settings=settings.model_dump(mode="json", exclude_none=True),
            inputs=inputs,
        )

    @property
    def observed_columns(self) -> tuple[str, ...]:
        """Names for all coordinates that a model observes, past values among them."""
        return self.columns + past_names(self.columns, self.lags, self.delay)

    @property
    def true_system(self) -> System | None:
        """The system to compare with coordinate by coordinate; None if unknown, or for past values beside."""
        return self.system if self.lags == 1 else None

    @property
    def training_steps(self) -> int:
        """The number of steps to train on, over all trials."""
        return sum(map(len, self.training))

    @property
    def gaps(self) -> int:
        """The number of missing values, over all trials."""
        return int(sum(np.isnan(trial).sum() for trial in self.trials))

    @cached_property
    def suggested_tau(self) -> int:
        """The forcing interval that the part to train on suggests (`suggest_tau`)."""
        return suggest_tau(self.training)

    def sequence_length(self, most: int = 200) -> int:
        """Return the length of training sequences: ``most``, or the shortest trial to train on."""
        return max(2, min(as_int(most, "most", least=2), *map(len, self.training)))

    def complete(self) -> Dataset:
        """Return this dataset if it has no gaps; refuse it, with the place of the first one, if it has."""
        if self.first_gap is not None:
            raise SeriesError(f"{self.source}: {self.first_gap}: the value is missing (NaN)")
        return self

    @cached_property
    def fingerprint(self) -> str:
        """A short digest of the prepared data: equal for equal data, whatever they were made from."""
        digest = hashlib.sha256(f"{self.dt} {self.lags} {self.delay}".encode())
        scale = self.standardizer
        for array in (*self.training, *self.heldout_trials, self.reference, scale.mean, scale.std):
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        for array in () if self.inputs is None else self.inputs.arrays:
            digest.update(b"input" + repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        rows = sum(map(len, self.trials))
        names = ", ".join(self.columns[:12]) + (", ..." if len(self.columns) > 12 else "")
        count = f"{len(self.trials)} trials" if len(self.trials) > 1 else "1 trial"
        facts = {
            "source": self.source,
            "columns": f"{len(self.columns)} used: {names}",
            "inputs": "" if self.inputs is None else ", ".join(self.inputs.columns),
            "left out": "; ".join(f"{name} ({reason})" for name, reason in self.left_out.items()),
            "rows": f"{rows} in {count}: {self.training_steps} to train on, {len(self.heldout)} held out",
            "gaps": f"{self.gaps} values are missing, the first in {self.first_gap}" if self.gaps else "none",
            "dt": ("not known, rates are per step" if self.dt is None else f"{self.dt:g}")
            + (f" ({self.dt_from})" if self.dt_from else ""),
            "lags": f"{self.lags}, {self.delay} steps apart" if self.lags > 1 else "",
        }
        lines = [f"Dataset {self.name!r}"] + [f"  {key:<9}{text}" for key, text in facts.items() if text]
        return "\n".join(lines)


def _past(seen: list[Floats], settings: DataSettings, *, driven: bool) -> tuple[int, int]:
    """Return how many lags a series gets, and how far apart: as asked for, or chosen from ``seen``."""
    lags = settings.lags
    if lags is None and (driven or seen[0].shape[1] > 1):
        lags = 1
    if lags == 1:
        return 1, settings.delay or 1
    delay = settings.delay or usual_delay(seen)
    return lags or suggest_lags(seen, delay=delay), delay
