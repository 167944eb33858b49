"""Error bars on the dynamics of a model: draws of models in, an interval for each figure out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats, as_float, as_instance, as_int, one_of
from palrnn.engine.plain import plain
from palrnn.engine.progress import Progress, listening
from palrnn.geometry.posterior import ModelDraws
from palrnn.geometry.reflection import has_refits, reflected
from palrnn.invariants import FixedPoints, fixed_points, quantities_of_interest, samples_flow
from palrnn.invariants.quantities import first_point
from palrnn.model import drift_of
from palrnn.model.engine import codes

# fixed points of the model that are followed through the draws
_FOLLOWED = 4
_MANY = 40


@dataclass(frozen=True, eq=False)
class Bars:
    """Figures of a model and of the models drawn around it by some ``method``.

    ``values (q,)`` are those of the model, ``draws (n, q)`` those of the draws, by ``names``; NaN where a
    model has no answer, because it diverged or has no such fixed point. ``flow`` says that exponents and
    dimension are of the flow that the models sample.
    """

    method: str
    names: tuple[str, ...]
    values: Floats = field(repr=False)
    draws: Floats = field(repr=False)
    flow: bool = False

    def interval(self, name: str, coverage: float = 0.9) -> tuple[float, float]:
        """Return the central interval of a figure over the draws that have it; NaN if fewer than half do.

        See `draws_interval`.
        """
        share = as_float(coverage, "coverage", above=0.0, most=1.0)
        return draws_interval(self.draws[:, self.names.index(one_of(name, "name", self.names))], share)

    def to_dict(self) -> dict[str, Any]:
        """Return the method, and of each figure its value, the ends of its 90 % interval, and the draws."""
        figures = {}
        for k, name in enumerate(self.names):
            low, high = self.interval(name)
            figures[name] = {"value": self.values[k], "low": low, "high": high, "draws": self.draws[:, k]}
        found = {"method": self.method, "coverage": 0.9, "models": len(self.draws)}
        found |= {"flow": self.flow, "figures": figures}
        values: dict[str, Any] = plain(found)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what `to_dict` described."""
        figures = values["figures"]
        columns = [np.array(each["draws"], dtype=np.float64) for each in figures.values()]
        model = np.array([each["value"] for each in figures.values()], dtype=np.float64)
        draws = np.stack(columns, axis=1) if columns else np.empty((values["models"], 0))
        return cls(values["method"], tuple(figures), model, draws, bool(values.get("flow", False)))

    def __repr__(self) -> str:
        lines = [f"Bars({len(self.draws)} models by {self.method!r}, 90 % intervals:"]
        for name, value in zip(self.names, self.values, strict=True):
            low, high = self.interval(name)
            lines.append(f"  {name} {value:.4g} ({low:.4g} to {high:.4g})")
        return "\n".join(lines) + ")"


def draws_interval(draws: Floats, coverage: float) -> tuple[float, float]:
    """Return the interval that holds one more draw with probability ``coverage``, of ``draws (n,)``.

    Of many draws its ends are at the ranks (n + 1) q; of fewer than 40, mean and deviation give those of
    Student's t for one more draw, m +- t s sqrt(1 + 1 / n). Draws that are not finite are left out, and where
    these are more than half there is no interval: NaN.
    """
    kept = draws[np.isfinite(draws)]
    if len(kept) < 2 or 2 * len(kept) < len(draws):
        return float("nan"), float("nan")
    tails = np.array([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
    if len(kept) < _MANY:
        # Student's quantiles; SciPy's functions take a third of a second to import
        from scipy.special import stdtrit

        spread = kept.std(ddof=1) * np.sqrt(1.0 + 1.0 / len(kept))
        ends = kept.mean() + stdtrit(len(kept) - 1, tails) * spread
    else:
        ends = np.quantile(kept, tails, method="weibull")
    return float(ends[0]), float(ends[1])


def model_bars(
    posterior: ModelDraws,
    reference: ArrayLike,
    *,
    method: str = "given",
    count: int = 20,
    standardizer: Standardizer | None = None,
    steps: int = 10_000,
    discard: int = 1000,
    dt: float = 0.01,
    exponents: int = 3,
    columns: tuple[str, ...] | None = None,
    extra: Callable[[Any], Mapping[str, float]] | None = None,
    flow: bool | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Bars:
    """Return figures of ``count`` models drawn from ``posterior``, against raw ``reference (T, N)``.

    They are the ``exponents`` largest Lyapunov exponents (of the ``flow``, by default where the reference
    samples one) and the Kaplan-Yorke dimension per unit of time ``dt``, D_stsp, D_H, of up to four fixed
    points in the regions that the model visits the raw position (by ``columns``) and the largest eigenvalues
    by modulus and angle (0 to pi, radians per step), and what ``extra(model)`` adds. A fixed point of a draw
    is the one nearest to the model's. Where draws have refits (``bootstrap(method="reflected")``), exponents,
    dimension and fixed points are reflected (`reflection`); distances to the reference stay.
    """
    as_instance(posterior, "posterior", ModelDraws)
    drift = drift_of(posterior.model)
    seen = drift.observed_dim
    start = first_point(reference, standardizer, seen)
    scale = Standardizer(np.zeros(seen), np.ones(seen)) if standardizer is None else standardizer
    names = columns or tuple(f"x{k + 1}" for k in range(seen))
    models = [drift, *posterior.sample(as_int(count, "count", least=2), seed=seed)]
    how: dict[str, Any] = {"standardizer": scale, "steps": as_int(steps, "steps", least=20)}
    how |= {"discard": discard, "dt": dt, "k": None, "seed": seed}
    how["flow"] = samples_flow(drift, reference, start) if flow is None else flow
    most, followed = as_int(exponents, "exponents", least=1), None
    found, again, others = (list[dict[str, float]]() for _ in range(3))
    with listening(progress, "error bars") as report:
        for number, model in enumerate(models):
            result, points = _run(model, reference, how)
            followed = _near(points, scale, drift) if followed is None else followed
            places = _nearest(points, followed)
            found.append(_invariants(result, most) | _points(points, places, scale, names))
            others.append(_distances(result) | ({} if extra is None else dict(extra(model))))
            if has_refits(posterior) and number:
                refit = posterior.refit_of(model)  # type: ignore[attr-defined]
                seconds: dict[str, float] = {}
                if refit is not None:
                    other, near = _run(refit, reference, how)
                    # the refit's own points nearest to those of its model
                    own = _nearest(near, points.points[places, :seen])
                    seconds = _invariants(other, most) | _points(near, own, scale, names)
                again.append(seconds)
            report(number + 1, len(models), {"exponent": found[-1].get("exponent 1", float("nan"))})
    order = tuple(dict.fromkeys(name for figures in found for name in figures))
    table = _table(found, order)
    if again:
        draws, refitted, sizes = table[1:], _table(again, order), np.array(["|" in name for name in order])
        # moduli are positive, and stay so by their logarithm
        with np.errstate(divide="ignore"):
            draws[:, sizes], refitted[:, sizes] = np.log(draws[:, sizes]), np.log(refitted[:, sizes])
        draws = reflected(draws, refitted)
        draws[:, sizes] = np.exp(draws[:, sizes])
        table[1:] = draws
    beside = tuple(dict.fromkeys(name for figures in others for name in figures))
    table = np.concatenate([table, _table(others, beside)], axis=1)
    return Bars(method, (*order, *beside), table[0], table[1:], bool(how["flow"]))


def _table(found: list[dict[str, float]], names: tuple[str, ...]) -> Floats:
    return np.array([[figures.get(name, np.nan) for name in names] for figures in found])


def _invariants(result: Any, exponents: int) -> dict[str, float]:
    if result.lyapunov is None:
        return {}
    largest = result.lyapunov.exponents[:exponents]
    figures = {f"exponent {k + 1}": float(value) for k, value in enumerate(largest)}
    return figures | {"Kaplan-Yorke dimension": _number(result.lyapunov.kaplan_yorke)}


def _distances(result: Any) -> dict[str, float]:
    if result.dstsp is None:
        return {}
    return {"D_stsp": result.dstsp.value, "D_H": _number(result.spectrum_distance)}


def _near(points: FixedPoints, scale: Standardizer, drift: Any) -> Floats:
    """Return the observed part of the fixed points to follow, those nearest to the middle of the data."""
    seen = points.points[:, : drift.observed_dim]
    return np.asarray(seen[np.argsort(np.linalg.norm(seen, axis=1))[:_FOLLOWED]])


def _run(model: Any, reference: ArrayLike, how: dict[str, Any]) -> tuple[Any, FixedPoints]:
    """Return a model's quantities of interest, and the fixed points in the regions that it visits."""
    result = quantities_of_interest(model, reference, **how)
    return result, fixed_points(model, within=np.unique(codes(model, result.states), axis=0))


def _nearest(points: FixedPoints, followed: Floats) -> list[int]:
    """Return which of ``points`` is nearest to each of ``followed (k, N)``; none if there are none."""
    seen = points.points[:, : followed.shape[1]]
    return [int(np.linalg.norm(seen - place, axis=1).argmin()) for place in followed] if len(seen) else []


def _points(
    points: FixedPoints, which: list[int], scale: Standardizer, names: tuple[str, ...]
) -> dict[str, float]:
    figures: dict[str, float] = {}
    for k, nearest in enumerate(which):
        raw = scale.inverse(points.points[nearest, : len(names)])
        figures |= {
            f"fixed point {k + 1} {name}": float(value) for name, value in zip(names, raw, strict=True)
        }
        for number, value in enumerate(points.eigenvalues[nearest][:3]):
            figures[f"fixed point {k + 1} |eigenvalue {number + 1}|"] = float(np.abs(value))
            # of a pair the one above: its conjugate says the same
            figures[f"fixed point {k + 1} angle of eigenvalue {number + 1}"] = float(np.abs(np.angle(value)))
    return figures


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
