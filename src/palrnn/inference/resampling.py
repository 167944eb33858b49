"""Resampling: from weights to ancestors, by schemes that are registered by name.

A scheme is a function ``scheme(weights (K,), uniforms (n,), ancestors (n,))`` that fills ``ancestors`` from
independent uniform numbers so that index k appears n * weights_k / sum(weights) times in expectation, which
is what keeps the evidence estimate unbiased. Schemes differ in the noise that they add; Douc and Cappe (2005)
compare them. Another one is one function, in plain NumPy or compiled:

    @scheme("mine")
    def mine(weights, uniforms, ancestors):
        \"\"\"One line that says what it is: it becomes part of the docstring of `resample`.\"\"\"

and must pass tests/contracts/test_resampling_scheme.py. The filter's compiled loop calls those in
`kernels.resampling` itself and hands over to Python for any other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_instance, as_int, as_shape, one_of
from palrnn.inference.kernels import resampling as kernels

Scheme = Callable[[Floats, Floats, NDArray[np.int32]], None]

#: The registered schemes by name.
SCHEMES: dict[str, Scheme] = {}


def resample(
    weights: ArrayLike, n: int, rng: np.random.Generator, *, scheme: str = "multinomial"
) -> NDArray[np.int32]:
    """Return ``n`` ancestors, index k appearing ``n * weights[k] / sum(weights)`` times in expectation.

    The schemes are

    """
    values = as_shape(weights, "weights", (None,))
    if (values < 0).any() or not values.sum() > 0:
        raise ValueError("weights must be non-negative with a positive sum")
    ancestors = np.empty(as_int(n, "n", least=1), dtype=np.int32)
    as_instance(rng, "rng", np.random.Generator)
    SCHEMES[one_of(scheme, "scheme", SCHEMES)](values, rng.random(len(ancestors)), ancestors)
    return ancestors


def scheme(name: str) -> Callable[[Scheme], Scheme]:
    """Register the decorated function as the resampling scheme ``name`` (see the module)."""
    if name in SCHEMES:
        raise ValueError(f"name must be new, there is a scheme {name!r} already")

    def register(draw: Scheme) -> Scheme:
        SCHEMES[name] = draw
        first = (draw.__doc__ or "").strip().splitlines()[:1]
        resample.__doc__ = f"{(resample.__doc__ or '').rstrip()}\n    - ``{name}``: {''.join(first)}\n"
        return draw

    return register


def kernel_number(name: str) -> int:
    """The number by which the compiled loop knows a scheme, or ``kernels.OUTSIDE`` where it does not."""
    draw = SCHEMES[name]
    return kernels.COMPILED.index(draw) if draw in kernels.COMPILED else kernels.OUTSIDE


for _draw in kernels.COMPILED:
    scheme(_draw.__name__)(_draw)
