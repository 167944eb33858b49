"""External inputs: z_{t+1} = F(z_t) + C s_t.

``inputs = s (T, K)`` has one row for each row of the series, and s_t acts on the step from t to t+1; the last
row acts on nothing, unless the run goes on from there. A driven model has ``input_dim = K > 0`` and ``C (M,
K)``, whose entries, row-major, are the last ones of its theta. What a family itself says of its map, in
``affine``, ``pullback`` and ``gate_pullback``, is of F alone; the rest is added here, the same for all
families.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_floats, as_series, as_shape, as_trials


def checked_inputs(model: Any, inputs: ArrayLike | None, length: int, name: str = "inputs") -> Floats | None:
    """Return ``inputs`` as ``(length, K)``, or None where the model takes none; 1-D means K = 1.

    ``model`` is a `Surrogate` or a `PALRNN`, or K itself.
    """
    wanted = input_dim(model)
    if inputs is None:
        if wanted:
            raise ValueError(
                f"{name} must be given, ({length}, {wanted}): the model is driven by {_many(wanted)}"
            )
        return None
    if not wanted:
        raise ValueError(f"{name} must be None, got {type(inputs).__name__}: the model takes no inputs")
    rows = as_series(inputs, name, min_steps=0)
    if rows.shape != (length, wanted):
        raise ValueError(
            f"{name} must be ({length}, {wanted}), one row for each row of the series and one column for "
            f"each input of the model, got {np.shape(inputs)}"
        )
    return rows


def checked_trial_inputs(
    model: Any, inputs: ArrayLike | Sequence[ArrayLike] | None, lengths: Sequence[int], name: str = "inputs"
) -> list[Floats | None]:
    """Return the inputs of each trial, of the given ``lengths``; see `checked_inputs`."""
    if inputs is None or not input_dim(model):
        return [checked_inputs(model, inputs, length, name) for length in lengths]  # type: ignore[arg-type]
    parts = as_trials(inputs, name, min_steps=0)
    if len(parts) != len(lengths):
        raise ValueError(f"{name} must hold one series for each of {len(lengths)} trials, got {len(parts)}")
    names = [name] if len(parts) == 1 else [f"{name}[{k}]" for k in range(len(parts))]
    return [checked_inputs(model, *each) for each in zip(parts, lengths, names, strict=True)]


def input_dim(model: Any) -> int:
    """Return K of a surrogate or of the drift of a PAL-RNN; a number stands for itself."""
    return model if isinstance(model, int) else int(getattr(model, "drift", model).input_dim)


def input_parameters(model: Any) -> int:
    """Return how many of the entries of theta, the last ones, are those of C: M K."""
    drift = getattr(model, "drift", model)
    return int(drift.latent_dim * drift.input_dim)


def offsets(model: Any, inputs: Floats | None) -> Floats | None:
    """Return C s of each row of checked inputs, ``(..., K) -> (..., M)``; None where there are none."""
    if inputs is None:
        return None
    C: Floats = getattr(model, "drift", model).C
    # a sum of columns: the last bits of a product may depend on how many rows there are
    total = inputs[..., :1] * C[:, 0]
    for k in range(1, C.shape[1]):
        total += inputs[..., k : k + 1] * C[:, k]
    return np.ascontiguousarray(total)


def input_pullback(inputs: Floats, r: Floats) -> Floats:
    """Return r^T d(C s)/dC = r s^T for ``inputs (..., K)`` and ``r (..., M)``, row-major ``(..., M K)``."""
    outer = r[..., :, None] * inputs[..., None, :]
    return outer.reshape(*outer.shape[:-2], -1)


def driven(model: Any, C: ArrayLike) -> Any:
    """Return a surrogate of the same family and parameters that is driven through ``C (M, K)``."""
    matrix = as_shape(C, "C", (model.latent_dim, None))
    moved = type(model).from_arrays(model.arrays() | {"C": matrix})
    if moved.input_dim != matrix.shape[1]:
        raise ValueError(f"model must be of a family that takes inputs, got {type(model).__name__}")
    return moved


def checked_input_map(C: ArrayLike | None, dim: int) -> Floats | None:
    """Return ``C (M, K)`` for a model of M = ``dim`` units, or None where there are no inputs."""
    if C is None:
        return None
    matrix = as_shape(C, "C", (dim, None))
    return matrix if matrix.shape[1] else None


def row_offsets(model: Any, inputs: ArrayLike | None, shape: tuple[int, ...]) -> Floats | None:
    """Return C s for ``inputs (..., K)`` of single states, whose leading axes fit ``shape``."""
    wanted = input_dim(model)
    if inputs is None or not wanted:
        checked_inputs(model, inputs, 1)
        return None
    array = as_floats(inputs, "inputs")
    fits = array.ndim > 0 and array.shape[-1] == wanted
    try:
        fits = fits and np.broadcast_shapes(array.shape[:-1], shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"inputs must be (..., {wanted}) with leading axes that fit {shape}, got {array.shape}"
        )
    return offsets(model, array)


def _many(count: int) -> str:
    return "1 input" if count == 1 else f"{count} inputs"
