"""A PAL-RNN as the filter's kernels want it: hidden units in coordinates of their own, beliefs in bundles."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.vector_code import LANES
from palrnn.inference.hidden_basis import hidden_basis
from palrnn.inference.kernels.tiles import COLUMNS, STRIDE
from palrnn.inference.path_arrays import aligned
from palrnn.model import PALRNN

Wholes = NDArray[np.int64]


class FilterArrays(NamedTuple):
    """A PAL-RNN in coordinates y with z = ``basis`` y: hidden units first, then the others in their order.

    Hidden are the ``hidden`` of ``latent_dim`` units that are neither observed nor gated; `hidden_basis` says
    which coordinates they have, and what ``reach`` is: their rows of J are zero before it. A row of J is

        (J y)_i = own_i y_i + mate_i y_{partner_i} + sum_k J_ki c_k y_k,

    with own_i = A_ii for gated units: ``J (M, M)`` has in row k the column k of what is left. ``process`` is
    Q in panels, ``observation (N,)`` the diagonal of R, and ``gate (P,)`` the variance of the gate noise,
    once per gated unit. ``h (1, M)`` is the bias, or ``(T, M)`` that of each transition, h + C s_t.
    """

    J: Floats
    own: Floats
    mate: Floats
    partner: Wholes
    h: Floats
    process: Floats
    observation: Floats
    gate: Floats
    latent_dim: int
    hidden: int
    reach: int
    basis: Floats


class Layout(NamedTuple):
    """Where the entries of a matrix lie in a flat array: (k, v) at ``starts[k] + v * steps[k]``."""

    starts: Wholes
    steps: Wholes


class Workspace(NamedTuple):
    """What one bundle needs while it is stepped; two threads must not share one.

    ``product`` has room for the panels of J P, ``rows`` and ``unit`` for max(N, P) rows of P, ``gates (M,
    LANES)`` for what opens units where it is positive, always for ungated ones, ``active (M,)`` for a list of
    open units. The rest says where entries lie (`tiles` has a drawing): in a ``panel``, in panels that are
    written ``transposed``, in a ``vector``, and in the panels of a ``symmetric`` matrix, M rows for each.
    """

    product: Floats
    rows: Floats
    unit: Floats
    gates: Floats
    active: Wholes
    panel: Layout
    transposed: Layout
    vector: Layout
    symmetric: Layout


_known: WeakKeyDictionary[PALRNN, FilterArrays] = WeakKeyDictionary()


def filter_arrays(model: PALRNN) -> FilterArrays:
    """Return the arrays of ``model`` for the filter's kernels, the same ones for the same model."""
    if model not in _known:
        # weights that overflow are told by the filter, at the step where it dies
        with np.errstate(over="ignore", invalid="ignore"):
            _known[model] = _filter_arrays(model)
    return _known[model]


def driven_arrays(arrays: FilterArrays, drive: Floats | None) -> FilterArrays:
    """Return ``arrays`` with the bias of each transition; ``drive (T, M)`` is C s_t, None without inputs."""
    if drive is None:
        return arrays
    back: Floats = np.asarray(np.linalg.inv(arrays.basis), dtype=np.float64)
    return arrays._replace(h=np.asarray(arrays.h + row_products(drive, back)))


def row_products(rows: Floats, matrix: Floats) -> Floats:
    """Return ``matrix @ row`` of each of ``rows (T, M)``, to bits that do not depend on their number."""
    total = np.zeros((len(rows), len(matrix)))
    for k in range(rows.shape[1]):
        total += rows[:, k : k + 1] * matrix[:, k]
    return total


def _filter_arrays(model: PALRNN) -> FilterArrays:
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
    return FilterArrays(
        J=J,
        own=np.r_[found.own, np.zeros(free - hidden), drift.A[free:]],
        mate=np.r_[found.mate, np.zeros(dim - hidden)],
        partner=np.r_[found.partner, np.arange(hidden, dim)],
        h=(back @ drift.h[order])[None],
        process=in_panels((back * model.process_variances[order]) @ back.T),
        observation=model.observation_variances,
        gate=np.full(gated, model.gate_std**2),
        latent_dim=dim,
        hidden=hidden,
        reach=found.reach,
        basis=np.eye(dim)[:, order] @ change,
    )


def workspace(model: PALRNN) -> Workspace:
    """Return a fresh workspace for one bundle."""
    dim = model.drift.latent_dim
    count = max(model.drift.observed_dim, model.drift.gated)
    gates = aligned((dim, LANES))
    gates[:] = 1.0
    units = np.arange(dim)
    own_panel, column = units // COLUMNS, units % COLUMNS
    return Workspace(
        product=aligned((_panels(dim) * dim * STRIDE,)),
        rows=aligned((count * dim * LANES,)),
        unit=aligned((count * dim * LANES,)),
        gates=gates,
        active=np.arange(dim),
        panel=Layout(units * STRIDE, np.full(dim, LANES)),
        transposed=Layout((own_panel * dim * COLUMNS + column) * LANES, np.full(dim, STRIDE)),
        vector=Layout(units * LANES, np.full(dim, LANES)),
        symmetric=_symmetric_layout(dim),
    )


def _symmetric_layout(dim: int) -> Layout:
    """Row k of panel p at entry p M + k: where it is kept, or its mirror image is."""
    units, panels = np.arange(dim), np.arange(_panels(dim))[:, None]
    own_panel, column = units // COLUMNS, units % COLUMNS
    kept = (_rows_before(panels) + units) * STRIDE
    mirrored = (_rows_before(own_panel) + panels * COLUMNS) * STRIDE + column * LANES
    below = own_panel > panels
    return Layout(np.where(below, mirrored, kept).ravel(), np.where(below, STRIDE, LANES).ravel())


def initial_bundles(arrays: FilterArrays, model: PALRNN, x1: Floats, particles: int) -> tuple[Floats, Floats]:
    """Return the means (bundles, M * LANES) and covariances (bundles, size) of z_1, equal for all particles.

    The last bundle may have lanes that belong to no particle.
    """
    back = np.linalg.inv(arrays.basis)
    cov = (back * model.initial_variances) @ back.T
    bundles, dim = -(-particles // LANES), len(cov)
    entries = in_panels(cov)
    means, covs = aligned((bundles, dim * LANES)), aligned((bundles, entries.size * LANES))
    means[:], covs[:] = np.repeat(back @ model.drift.embed(x1), LANES), np.repeat(entries, LANES)
    return means, covs


def unbundled(
    arrays: FilterArrays, means: Floats, covs: Floats, particles: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Return mean ``(k, M)`` and covariance ``(k, M, M)`` of z of some ``particles (k,)``, out of bundles."""
    dim, basis = arrays.latent_dim, arrays.basis
    bundle, lane = particles // LANES, particles % LANES
    units, layout = np.arange(dim), _symmetric_layout(dim)
    row = units // COLUMNS * dim + units[:, None]  # entry (i, j) is in row i of the panel of j
    places = layout.starts[row] + units % COLUMNS * layout.steps[row]
    mean = means[bundle[:, None], units * LANES + lane[:, None]]
    cov = covs[bundle[:, None, None], places + lane[:, None, None]]
    return mean @ basis.T, basis @ cov @ basis.T


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
