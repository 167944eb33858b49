"""Every invariant of one model, each beside the number it has to be read against."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer, noise_level
from palrnn.data.systems import System
from palrnn.data.timescale import is_smooth
from palrnn.engine.checks import Floats, as_int, as_series
from palrnn.engine.display import Display, curves_svg
from palrnn.engine.gaps import first_whole_row
from palrnn.engine.plain import plain
from palrnn.engine.seeds import generator
from palrnn.invariants.exponents import LONG_EXPONENT, DivergenceError, LyapunovSpectrum, has_grown
from palrnn.invariants.fixed_points import FixedPoints, fixed_points
from palrnn.invariants.floors import SETTLE, Floor, score_floors
from palrnn.invariants.free_run import drives_from
from palrnn.invariants.lyapunov import HowMany, lyapunov_spectrum, reference_spectrum
from palrnn.invariants.over_starts import StartScores, scores_over_starts
from palrnn.invariants.prediction import PredictionError, prediction_error
from palrnn.invariants.quantities import Quantities, quantities_of_interest, samples_flow
from palrnn.invariants.state_space import delay_for, dstsp
from palrnn.invariants.symbolic import SymbolicDynamics, symbolic_dynamics
from palrnn.invariants.verdict import Verdict, verdict
from palrnn.invariants.viability import Viability, spread_rows, viability
from palrnn.model import PALRNN, Surrogate, drift_of
from palrnn.model.engine import codes
from palrnn.model.inputs import checked_inputs

_REFERENCE_WORK = 4_000_000
_MOST_GATED, _MOST_REGIONS = 14, 4096
# a bin is about a seventh of a deviation: noise below this part of one moves few points into another
_SEEN_NOISE = 0.005


@dataclass(frozen=True, eq=False)
class Scorecard(Display):
    """The invariants of a model against a reference.

    ``hard`` are those of the hard-gated drift, ``sampled`` those of the stochastic model (None for a
    surrogate without noise); ``dstsp_floor`` and ``spectrum_floor`` what the true system scores against
    itself; ``reference_exponents`` the true system's own, of the literature where it has them (of a series,
    what the caller gave, or None).
    ``symbols`` is None if the rollout diverged; ``fixed_points`` are of all regions or, where these are too
    many to solve, of those that the run visits (None if it diverged).
    ``reference (steps, N)`` is in raw coordinates, simulated by ``system`` where that is not None.
    ``viability`` is what becomes of long runs, ``over_starts`` the scores of runs from the same starts, and
    ``over_starts_with_noise`` those of the same runs with white noise added, of the level that the reference
    is estimated to have, ``noise (N,)`` (`noise_level`); None of a simulated system, and without noise.
    ``dstsp_at_rest`` is what a run at rest in the middle of the reference would score, with that noise: a
    score that is no lower says nothing. ``flow`` says that the reference looks like samples of a flow
    without inputs; if they are fine enough (`samples_flow`), the exponents of ``hard`` are those of the flow.
    ``chaotic`` says whether the run is; None where that does not matter: the true exponent is known,
    something drives the model, or a run ends.
    """

    hard: Quantities
    sampled: Quantities | None
    dstsp_floor: Floor
    spectrum_floor: Floor
    reference_exponents: LyapunovSpectrum | None
    lyapunov: float | None
    prediction: PredictionError
    symbols: SymbolicDynamics | None
    fixed_points: FixedPoints | None
    reference: Floats
    gated: int
    system: str | None = None
    viability: Viability | None = None
    over_starts: StartScores | None = None
    noise: Floats | None = None
    over_starts_with_noise: StartScores | None = None
    dstsp_at_rest: float | None = None
    flow: bool = False
    chaotic: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """What it all comes to: good, fair or not usable, and why."""
        return verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values for JSON; what is infinite or does not exist is None."""
        known = self.reference_exponents
        points, symbols = self.fixed_points, self.symbols
        return {
            "verdict": self.verdict.to_dict(),
            "viability": None if self.viability is None else self.viability.to_dict(),
            "steps": len(self.reference),
            "system": self.system,
            "hard": _run_dict(self.hard),
            "sampled": None if self.sampled is None else _run_dict(self.sampled),
            "over_starts": None if self.over_starts is None else plain(self.over_starts.to_dict()),
            "noise_level": None if self.noise is None else _numbers(self.noise),
            "over_starts_with_noise": None
            if self.over_starts_with_noise is None
            else plain(self.over_starts_with_noise.to_dict()),
            "dstsp_floor": _floor_dict(self.dstsp_floor),
            "dstsp_at_rest": self.dstsp_at_rest,
            "spectrum_floor": _floor_dict(self.spectrum_floor),
            "reference_exponents": None if known is None else _numbers(known.exponents),
            "reference_exponents_stderr": None if known is None else _numbers(known.stderr),
            "reference_kaplan_yorke": None if known is None else known.kaplan_yorke,
            "reference_largest_exponent": self.lyapunov,
            "chaotic": self.chaotic,
            "prediction_mse": _numbers(self.prediction.mse),
            "valid_steps": float(self.prediction.valid_steps.mean()),
            "valid_time": self.prediction.valid_time,
            "codes_visited": None if symbols is None else len(symbols.codes),
            "codes_possible": 2**self.gated,
            "code_entropy_bits": None if symbols is None else symbols.occupancy_entropy,
            "code_entropy_rate_bits": None if symbols is None else symbols.entropy_rate(),
            "mean_dwell_steps": None if symbols is None else len(symbols.symbols) / len(symbols.runs),
            "fixed_points": None if points is None else len(points),
            "fixed_point_regions": None if points is None else points.regions,
            "stable_fixed_points": None if points is None else int(points.stable.sum()),
        }

    def heading(self) -> str:
        """Return the verdict."""
        return f"Scorecard: {self.verdict}"

    def facts(self) -> list[tuple[str, str]]:
        """Return the scores beside what they are read against."""
        runs = {"hard-gated": self.hard} | ({} if self.sampled is None else {"sampled": self.sampled})
        found = [] if self.viability is None else [("free runs", self.viability.verdict)]
        for name, run in runs.items():
            if run.dstsp is None or run.lyapunov is None or run.spectrum_distance is None:
                found.append((name, f"diverges after {run.diverged_at} steps"))
                continue
            true = "" if self.lyapunov is None else f" (true: {self.lyapunov:.3g})"
            if run.map_lyapunov is not None:
                true += f"; of the map {run.map_lyapunov.largest:.3g}"
            elif self.hard.map_lyapunov is not None:
                true += ", of the map"
            scores = self.over_starts if run is self.hard else None
            found += _scores(name, scores or (run.dstsp.value, run.spectrum_distance), self)
            if scores is not None and self.over_starts_with_noise is not None:
                found += _scores("noise added", self.over_starts_with_noise, self)
            found.append((f"largest exponent, {name}", f"{run.lyapunov.largest:.3g}{true}"))
        mean = f"{self.prediction.valid_steps.mean():.3g}"
        return [*found, ("forecasts", f"hold for {mean} step{'' if mean == '1' else 's'}")]

    def records(self) -> list[dict[str, Any]]:
        """Return one row per way to run the model: its figures, and their floors."""
        floors = {"dstsp_floor": self.dstsp_floor.median, "spectrum_floor": self.spectrum_floor.median}
        runs = {"hard": self.hard, "sampled": self.sampled}
        return [{"run": name, **run.numbers(), **floors} for name, run in runs.items() if run is not None]

    def picture(self) -> str:
        """Return the reference, and the free run of the model on top."""
        return curves_svg([("reference", self.reference), ("model", self.hard.generated)])

    def __repr__(self) -> str:
        return f"Scorecard({self.verdict}; {self.hard!r}, D_stsp floor {self.dstsp_floor.median:.4g})"


def scorecard(
    model: Surrogate | PALRNN,
    reference: System | ArrayLike,
    *,
    inputs: ArrayLike | None = None,
    standardizer: Standardizer | None = None,
    dt: float = 0.01,
    steps: int = 9000,
    discard: int = 1000,
    process_std: float = 0.0,
    lyapunov: float | None = None,
    pairs: int = 20,
    k: HowMany = 3,
    n: int = 20,
    bins: int = 30,
    smoothing: float = 1e-5,
    protocol: str = "paper",
    starts: int = 10,
    long_steps: int = 100_000,
    flow: bool | None = None,
    seed: int = 0,
) -> Scorecard:
    """Return every invariant of ``model`` with its floor or reference value.

    ``reference`` is the true `System` (simulated with ``dt`` and ``process_std``), or a raw series ``(T,
    N)``. Of a series, the first half is the reference at most, so that the rest can tell the floor; its
    largest Lyapunov exponent is unknown unless given as ``lyapunov``. Of a single coordinate, D_stsp is in
    its delay space. The scores are of ``steps`` steps after
    ``discard``, floors of ``pairs`` pairs, ``k`` exponents, forecasts ``n`` steps ahead; from ``starts`` rows
    of the reference the model also runs for ``long_steps``. A driven model needs the series as reference, and
    its ``inputs (T, K)`` in the model's coordinates; they are repeated where a run outlasts them. Its
    fixed points are those without input. ``flow`` says whether exponents of ``hard`` are those of the flow
    that the reference samples; by default `samples_flow` does.
    """
    drift = drift_of(model)
    steps = as_int(steps, "steps", least=20)
    known, drive = None, None
    source: System | Floats
    if isinstance(reference, System):
        if inputs is not None or drift.input_dim:
            raise ValueError("reference must be a series, with its inputs, for a driven model, got a System")
        source = reference
        dim = len(reference.typical)
        if dim != drift.observed_dim:
            raise ValueError(
                f"reference must have {drift.observed_dim} coordinates, {reference.name} has {dim}"
            )
        truth = reference.simulate(steps, dt=dt, process_std=process_std, discard=SETTLE, seed=seed)
        # a step costs about the square of the dimension; all exponents in a second or so
        known = reference_spectrum(reference, truth[-1], steps=max(20_000, _REFERENCE_WORK // dim**2), dt=dt)
        lyapunov = known.largest if lyapunov is None else lyapunov
    else:
        source = as_series(reference, "reference", min_steps=40, dim=drift.observed_dim, allow_nan=True)
        steps = min(steps, len(source) // 2)
        truth = source[:steps]
        drive = checked_inputs(drift, inputs, len(source))
        drive = None if drive is None else drive[:steps]
    common: dict[str, Any] = {"bins": bins, "smoothing": smoothing, "protocol": protocol}
    common["delay"] = delay_for(truth)
    run = common | {"standardizer": standardizer, "discard": discard, "dt": dt, "seed": seed}
    run["inputs"] = drive
    asked = k if k is None or k == "dimension" else min(as_int(k, "k", least=1), drift.latent_dim)
    run["k"] = asked
    scale = standardizer or Standardizer(np.zeros(drift.observed_dim), np.ones(drift.observed_dim))
    first = scale.transform(truth[first_whole_row(truth, "reference")])
    flow = samples_flow(drift, truth, first) if flow is None else bool(flow)
    hard = quantities_of_interest(drift, truth, flow=flow, **run)
    how: dict[str, Any] = {"steps": len(truth), "discard": discard, "dt": dt, "k": asked, "seed": seed}
    if flow and hard.lyapunov is not None:
        hard = replace(hard, map_lyapunov=lyapunov_spectrum(drift, first, **how))
    sampled = quantities_of_interest(model, truth, **run) if isinstance(model, PALRNN) else None
    places, rhythms = score_floors(
        source, length=steps, pairs=pairs, dt=dt, process_std=process_std, seed=seed, **common
    )
    own = scale.transform(truth)
    rows = spread_rows(own, as_int(starts, "starts", least=10))
    points, drives = own[rows], drives_from(drive, rows)
    symbols = symbolic_dynamics(codes(drift, hard.states)) if hard.diverged_at is None else None
    scored: dict[str, Any] = {"standardizer": scale, "discard": discard, "seed": seed, **common}
    scored["drives"] = drives
    noise = None if isinstance(reference, System) else _seen_noise(source)
    life = viability(drift, points, long_steps, inputs=drives, data=own)
    asks = lyapunov is None and not drift.input_dim and life.viable
    return Scorecard(
        hard=hard,
        sampled=sampled,
        dstsp_floor=places,
        spectrum_floor=rhythms,
        reference_exponents=known,
        lyapunov=lyapunov,
        prediction=prediction_error(
            model, own, n, inputs=drive, dt=dt, lyapunov=lyapunov if lyapunov and lyapunov > 0 else None
        ),
        symbols=symbols,
        fixed_points=_fixed_points(drift, symbols),
        reference=truth,
        gated=drift.gated,
        system=reference.name if isinstance(reference, System) else None,
        viability=life,
        over_starts=scores_over_starts(drift, points, truth, **scored),
        noise=noise,
        over_starts_with_noise=None
        if noise is None
        else scores_over_starts(drift, points, truth, noise=noise, **scored),
        dstsp_at_rest=_at_rest(truth, noise, seed, common),
        flow=drift.input_dim == 0 and is_smooth(truth),
        chaotic=_chaotic(drift, first, hard, how) if asks else None,
    )


def _chaotic(drift: Surrogate, start: Floats, run: Quantities, how: dict[str, Any]) -> bool | None:
    """Return whether the run from ``start (N,)`` is chaotic, by a longer one where ``run`` does not tell."""
    known = [each for each in (run.lyapunov, run.map_lyapunov) if each is not None]
    if not known:
        return None
    if any(has_grown(each.largest, float(each.times[-1])) for each in known):
        return True
    steps = max(how["steps"], LONG_EXPONENT)
    try:
        found = lyapunov_spectrum(drift, start, **(how | {"steps": steps, "k": 1}))
    except DivergenceError:
        return None
    return has_grown(found.largest, steps * how["dt"])


def _seen_noise(series: Any) -> Floats | None:
    """Return the noise in a series, if there is enough of it to be seen in a score."""
    level = noise_level(series)
    return level if (level > _SEEN_NOISE * np.nanstd(series, axis=0)).any() else None


def _at_rest(truth: Floats, noise: Floats | None, seed: int, counting: dict[str, Any]) -> float:
    """Return D_stsp of a run at rest in the mean of ``truth (T, N)``, with ``noise (N,)`` on it."""
    run = np.tile(np.nanmean(truth, axis=0), (len(truth), 1))
    if noise is not None:
        run = run + noise * generator(seed, "observation noise", "at rest").standard_normal(run.shape)
    return dstsp(run, truth, seed=seed, **counting).value


def _fixed_points(drift: Surrogate, symbols: SymbolicDynamics | None) -> FixedPoints | None:
    """Return the fixed points in all regions, or, of many, in those that the run visits."""
    if drift.gated <= _MOST_GATED:
        return fixed_points(drift)
    return None if symbols is None else fixed_points(drift, within=symbols.codes[:_MOST_REGIONS])


def _scores(name: str, runs: StartScores | tuple[float, float], card: Scorecard) -> list[tuple[str, str]]:
    """Return D_stsp and D_H: median and range over starts, or of one run, with length and floor."""
    floors, steps = (card.dstsp_floor.median, card.spectrum_floor.median), len(card.reference)
    pairs = (runs.dstsp, runs.spectrum_distance) if isinstance(runs, StartScores) else runs
    found = []
    for label, values, floor in zip(("D_stsp", "D_H"), pairs, floors, strict=True):
        each = np.atleast_1d(np.asarray(values))
        spread = "one run" if len(each) == 1 else f"{each.min():.3g} to {each.max():.3g}, {len(each)} starts"
        words = f"{np.median(each):.3g} ({spread}, {steps:,} steps; floor {floor:.3g})"
        found.append((f"{label}, {name}", words))
    return found


def _run_dict(found: Quantities) -> dict[str, Any]:
    exponents = found.lyapunov
    return {
        "diverged_at": found.diverged_at,
        "dstsp": None if found.dstsp is None else found.dstsp.value,
        "outside": None if found.dstsp is None else found.dstsp.outside,
        "spectrum_distance": found.spectrum_distance,
        "exponents": None if exponents is None else _numbers(exponents.exponents),
        "exponents_stderr": None if exponents is None else _numbers(exponents.stderr),
        "kaplan_yorke": None if exponents is None else exponents.kaplan_yorke,
        "flow": None if exponents is None else exponents.flow,
        "map_exponents": None if found.map_lyapunov is None else _numbers(found.map_lyapunov.exponents),
    }


def _floor_dict(floor: Floor) -> dict[str, Any]:
    return {"median": floor.median, "low": floor.low, "high": floor.high, "pairs": len(floor.values)}


def _numbers(values: Floats) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in np.asarray(values)]
