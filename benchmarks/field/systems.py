"""Flows of the `dysts` collection as systems of ours: simulated, with exponents computed here.

The collection's own exponents are unreliable. Its equations are compiled into a `palrnn.System`; one long run
by Runge-Kutta steps, five to a sample and 100 samples to the collection's period, gives the rows to learn
from and, later in time, stretches to judge by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import dysts.flows
import numpy as np
from numba import njit

from palrnn.data import System, field_jacobian, make_system, vector_field
from palrnn.data.kernels import simulate
from palrnn.invariants import LyapunovSpectrum, lyapunov_spectrum

#: Chosen by name, before any was learned: well-known flows without inputs. HyperRossler was left out after a
#: look at its sampling: at the collection's period 15,000 rows are 20 of its Lyapunov times, and stretches of
#: the truth differ by 9 nats.
TWENTY = (
    *("Aizawa", "Arneodo", "BurkeShaw", "Chen", "Chua", "Dadras", "Finance", "GenesioTesi", "Hadley"),
    *("Halvorsen", "HyperLorenz", "Lorenz", "Lorenz84", "Lorenz96", "NewtonLiepnik"),
    *("RikitakeDynamo", "Rossler", "Rucklidge", "SprottB", "Thomas"),
)
PER_PERIOD, SUBSTEPS, TRANSIENT, APART = 100, 5, 5000, 1000
ROWS, LENGTH, STRETCHES, EXPONENT_STEPS = 15_000, 20_000, 7, 400_000


def _compiled(name: str, function: object, dim: int, count: int) -> tuple[object, object]:
    """Return the field and the Jacobian of a flow, of the signature that `palrnn.System` asks for."""
    inner = njit(nogil=True, error_model="numpy")(getattr(function, "py_func", function))
    values = ", ".join([f"z[{i}]" for i in range(dim)] + ["0.0"] + [f"p[{k}]" for k in range(count)])
    space: dict[str, object] = {"inner": inner, "__name__": __name__}
    exec(  # the number of arguments differs from flow to flow, and Numba wants it spelled out
        f"def field(z, p, out):\n    found = inner({values})\n"
        + "".join(f"    out[{i}] = found[{i}]\n" for i in range(dim)),
        space,
    )
    rates = space["field"]

    def jacobian(z, p, out):  # type: ignore[no-untyped-def]
        # central differences: not every flow of the collection has its Jacobian, and some have a wrong one
        dim = z.shape[0]
        up, down, point = np.empty(dim), np.empty(dim), z.copy()
        for j in range(dim):
            h = 1e-6 * max(1.0, abs(z[j]))
            point[j] = z[j] + h
            slope(point, p, up)
            point[j] = z[j] - h
            slope(point, p, down)
            point[j] = z[j]
            for i in range(dim):
                out[i, j] = (up[i] - down[i]) / (2.0 * h)

    slope = njit(nogil=True, error_model="numpy")(rates)
    return vector_field(rates), field_jacobian(jacobian)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Flow:
    """A flow of the collection, by its name there."""

    name: str

    @cached_property
    def system(self) -> System:
        flow = getattr(dysts.flows, self.name)()
        start = np.asarray(flow.ic, dtype=np.float64).ravel()
        if self.name == "Lorenz96":  # of any size, so its equations are not written out
            return replace(make_system("lorenz96", dim=len(start)), typical=tuple(start.tolist()))
        given = [float(value) for value in flow.param_list]
        field, jacobian = _compiled(self.name, flow._rhs, len(start), len(given))
        return System(field, jacobian, tuple(given), tuple(start.tolist()), self.name, self.dt)  # type: ignore[arg-type]

    @cached_property
    def dt(self) -> float:
        return float(getattr(dysts.flows, self.name)().period) / PER_PERIOD

    @cached_property
    def _run(self) -> np.ndarray:
        system, step = self.system, self.dt / SUBSTEPS
        rows = TRANSIENT + ROWS + STRETCHES * (APART + LENGTH)
        states = np.empty((rows * SUBSTEPS, system.dim))
        start, none, room = np.array(system.typical), np.empty((0, system.dim)), np.empty((5, system.dim))
        simulate(system.field, start, np.array(system.parameters), step, none, len(states), room, states)
        if not np.isfinite(states[-1]).all():
            raise ValueError(f"{self.name} left its attractor at steps of {step:g}")
        return np.ascontiguousarray(states[SUBSTEPS - 1 :: SUBSTEPS][TRANSIENT:])

    @property
    def rows(self) -> np.ndarray:
        """What is learned from, ``(ROWS, D)``."""
        return self._run[:ROWS]

    @property
    def stretches(self) -> list[np.ndarray]:
        """Later ones to judge by, each ``(LENGTH, D)``."""
        later, each = self._run[ROWS:], APART + LENGTH
        return [later[k * each + APART : (k + 1) * each] for k in range(STRETCHES)]

    @cached_property
    def spectrum(self) -> LyapunovSpectrum:
        """All exponents per unit of time."""
        return lyapunov_spectrum(
            self.system,
            self.rows[-1],
            steps=EXPONENT_STEPS,
            discard=20_000,
            dt=self.dt / SUBSTEPS,
        )
