"""A PAL-RNN as the filter's kernels want it: beliefs in bundles, and hidden units that move by themselves."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference.hidden_basis import hidden_basis
from palrnn.inference.kernels.tiles import COLUMNS, LANES, STRIDE
from palrnn.inference.system import aligned
from palrnn.model import PALRNN


class BundleSystem(NamedTuple):
    """A PAL-RNN in coordinates y with z = ``basis`` y: hidden units first, then the others in their order.

    Hidden are the ``hidden`` units that are neither observed nor gated; `hidden_basis` says which coordinates
    they have, and what ``reach`` is: their rows of J are zero before it. A row of J is applied as

        (J y)_i = own_i y_i + mate_i y_{partner_i} + sum_k J_ki c_k y_k,

    with own_i = A_ii for gated units: ``J (M, M)`` has in row k the column k of what is left. ``process`` is
    Q in panels, ``observation (N,)`` the diagonal of R, and ``gate (P,)`` the variance of the gate noise,
    once per gated unit.
    """

    J: Floats
    own: Floats
    mate: Floats
    partner: NDArray[np.int64]
    h: Floats
    process: Floats
    observation: Floats
    gate: Floats
    hidden: int
    reach: int
    basis: Floats


class Room(NamedTuple):
    """What one bundle needs while it is stepped; two threads must not share one.

    ``product`` has room for the panels of J P, ``rows`` and ``unit`` for max(N, P) rows of P, ``gates (M,
    LANES)`` for what opens units where it is positive, always for ungated ones, ``active`` for a list of open
    units. The rest says where things lie: ``lines[k]`` row k of a panel, ``units[k]`` entry k of a mean,
    ``columns[i]`` column i of ``product``. Entry (k, v) of the numbered panel of a symmetric matrix, of which
    only half is kept, is at ``bases[panel, k] + v steps[panel, k]``, flattened; ``near`` are the steps where
    neighbours are neighbours.
    """

    product: Floats
    rows: Floats
    unit: Floats
    gates: Floats
    active: NDArray[np.int64]
    lines: NDArray[np.int64]
    units: NDArray[np.int64]
    columns: NDArray[np.int64]
    bases: NDArray[np.int64]
    steps: NDArray[np.int64]
    near: NDArray[np.int64]


_systems: WeakKeyDictionary[PALRNN, BundleSystem] = WeakKeyDictionary()


def bundle_system(model: PALRNN) -> BundleSystem:
    """Return the arrays of ``model`` for the kernels of bundles, the same ones for the same model."""
    if model not in _systems:
        # weights that overflow are told by the filter, at the step where it dies
        with np.errstate(over="ignore", invalid="ignore"):
            _systems[model] = _bundle_system(model)
    return _systems[model]


def _bundle_system(model: PALRNN) -> BundleSystem:
    drift = model.drift
    dim, gated, seen = drift.latent_dim, drift.gated, drift.observed_dim
    free = dim - gated
    hidden = max(0, free - seen)
    order = np.r_[seen : seen + hidden, :seen, seen + hidden : dim] if hidden else np.arange(dim)
    F = drift.W[np.ix_(order, order)]
    F[np.arange(free), np.arange(free)] += drift.A[order[:free]]
    found = hidden_basis(F[:free, :free], hidden)
    change = np.eye(dim)
    change[:free, :free] = found.change
    back = np.linalg.inv(change)
    J = np.ascontiguousarray((back @ F @ change).T)
    J[: found.reach, :hidden] = 0.0
    return BundleSystem(
        J=J,
        own=np.r_[found.own, np.zeros(free - hidden), drift.A[free:]],
        mate=np.r_[found.mate, np.zeros(dim - hidden)],
        partner=np.r_[found.partner, np.arange(hidden, dim)],
        h=back @ drift.h[order],
        process=in_panels((back * model.process_variances[order]) @ back.T),
        observation=model.observation_variances,
        gate=np.full(gated, model.gate_std**2),
        hidden=hidden,
        reach=found.reach,
        basis=np.eye(dim)[:, order] @ change,
    )


def room_for(model: PALRNN) -> Room:
    """Return fresh room for one bundle."""
    dim = model.drift.latent_dim
    count = max(model.drift.observed_dim, model.drift.gated)
    units, panels = np.arange(dim), np.arange(_panels(dim))[:, None]
    own_panel, offset = units // COLUMNS, units % COLUMNS
    # below the diagonal block of its panel an entry is found above that of another one
    below = own_panel > panels
    kept = (_rows_before(panels) + units) * STRIDE
    mirrored = (_rows_before(own_panel) + panels * COLUMNS) * STRIDE + offset * LANES
    gates = aligned((dim, LANES))
    gates[:] = 1.0
    return Room(
        product=aligned((_panels(dim) * dim * STRIDE,)),
        rows=aligned((count * dim * LANES,)),
        unit=aligned((count * dim * LANES,)),
        gates=gates,
        active=np.arange(dim),
        lines=units * STRIDE,
        units=units * LANES,
        columns=(own_panel * dim * COLUMNS + offset) * LANES,
        bases=np.where(below, mirrored, kept).ravel(),
        steps=np.where(below, STRIDE, LANES).ravel(),
        near=np.full(dim, LANES),
    )


def initial_bundles(system: BundleSystem, model: PALRNN, x1: Floats, particles: int) -> tuple[Floats, Floats]:
    """Return the means (bundles, M * LANES) and covariances (bundles, size) of z_1, equal for all particles.

    The last bundle may have lanes that belong to no particle.
    """
    back = np.linalg.inv(system.basis)
    cov = (back * model.initial_variances) @ back.T
    bundles, dim = -(-particles // LANES), len(cov)
    entries = in_panels(cov)
    means, covs = aligned((bundles, dim * LANES)), aligned((bundles, entries.size * LANES))
    means[:], covs[:] = np.repeat(back @ model.drift.embed(x1), LANES), np.repeat(entries, LANES)
    return means, covs


def in_panels(matrix: Floats) -> Floats:
    """Return the entries of a symmetric ``matrix (M, M)`` in the order in which the kernels keep them."""
    dim = len(matrix)
    rows = np.zeros((_rows_before(_panels(dim)), COLUMNS))
    for panel, first in enumerate(range(0, dim, COLUMNS)):
        block = matrix[: first + COLUMNS, first : first + COLUMNS]
        rows[_rows_before(panel) :][: block.shape[0], : block.shape[1]] = block
    return rows.ravel()


def _panels(dim: int) -> int:
    return -(-dim // COLUMNS)


def _rows_before(panel: Any) -> Any:
    """The rows of all panels before the numbered one, each of which ends with its diagonal block."""
    return COLUMNS * panel * (panel + 1) // 2
