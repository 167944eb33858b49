"""Draws of the smoother for other libraries: as an xarray data set, and as ArviZ reads posteriors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from palrnn.inference.smoothing import Smoothed


def xarray_of(draws: Smoothed) -> Any:
    """Return ``draws`` as an `xarray.Dataset`, as `Smoothed.to_xarray` describes it."""
    xarray = _xarray()
    _, steps, gates = draws.codes.shape
    paths, states, times, units = draws.states.shape
    sizes = {"path": paths, "draw": states, "time": times, "unit": units, "step": steps, "gate": gates}
    return xarray.Dataset(
        {
            "states": (("path", "draw", "time", "unit"), draws.states),
            "gates": (("path", "step", "gate"), draws.codes),
            "distinct": (("step",), draws.distinct),
        },
        coords={name: np.arange(size) for name, size in sizes.items()},
        attrs={"method": draws.method},
    )


def arviz_of(draws: Smoothed) -> Any:
    """Return ``draws`` in the form that the installed ArviZ takes, as `Smoothed.to_arviz` describes it."""
    found = xarray_of(draws)
    flat = found[["states", "gates"]].rename(draw="state").stack(draw=("path", "state"))
    flat = flat.reset_index("draw", drop=True).assign_coords(draw=np.arange(flat.sizes["draw"]))
    posterior = flat.expand_dims(chain=[0]).transpose("chain", "draw", ...)
    posterior.attrs = dict(found.attrs)
    InferenceData = _inference_data()
    if InferenceData is not None:
        return InferenceData(posterior=posterior)
    return _xarray().DataTree.from_dict({"posterior": posterior})


def _xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise ImportError("this needs xarray: pip install 'palrnn[arviz]'") from None
    return xarray


def _inference_data() -> Any:
    """Return ArviZ's class for posteriors: None from 1.0 on, which takes the data trees of xarray."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces 1.0
            import arviz
    except ImportError:
        raise ImportError("this needs ArviZ: pip install 'palrnn[arviz]'") from None
    return getattr(arviz, "InferenceData", None)
