"""Draws of the smoother in other libraries: the same numbers, each draw with the gates of its own path."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from palrnn.inference import Smoothed
from palrnn.inference import draws as module


def _draws():
    rng = np.random.default_rng(0)
    paths, states, times, units, gates = 4, 3, 10, 5, 2
    return Smoothed(
        rng.random((paths, times - 1, gates)) < 0.5,
        rng.standard_normal((paths, times - 1, gates)),
        rng.standard_normal((paths, states, times, units)),
        np.arange(paths * (times - 1), dtype=np.int32).reshape(paths, -1),
        np.full(times - 1, paths),
        "gibbs",
    )


@pytest.mark.torch
def test_an_xarray_data_set_names_every_axis():
    pytest.importorskip("xarray")
    draws = _draws()
    found = draws.to_xarray()
    assert dict(found.sizes) == {"path": 4, "draw": 3, "time": 10, "unit": 5, "step": 9, "gate": 2}
    assert found["states"].dims == ("path", "draw", "time", "unit")
    np.testing.assert_array_equal(found["states"].sel(path=2, time=7), draws.states[2, :, 7])
    np.testing.assert_array_equal(found["gates"], draws.codes)
    assert found.attrs["method"] == "gibbs"


@pytest.mark.torch
@pytest.mark.parametrize("newer", [False, True])
def test_arviz_gets_one_chain_in_which_each_draw_has_the_gates_of_its_path(monkeypatch, newer):
    pytest.importorskip("arviz")
    draws = _draws()
    if newer:  # ArviZ from 1.0 on takes data trees of xarray
        monkeypatch.setattr(module, "_inference_data", lambda: None)
    posterior = draws.to_arviz()["posterior"]
    assert posterior["states"].dims == ("chain", "draw", "time", "unit")
    assert posterior["gates"].dims == ("chain", "draw", "step", "gate")
    assert posterior.sizes["draw"] == 12
    for draw in range(12):
        np.testing.assert_array_equal(posterior["states"][0, draw], draws.states[draw // 3, draw % 3])
        np.testing.assert_array_equal(posterior["gates"][0, draw], draws.codes[draw // 3])
    if not newer:
        import arviz

        # ArviZ's own mean is that of the draws
        table = arviz.summary(draws.to_arviz(), var_names=["states"], kind="stats", round_to="none")
        np.testing.assert_allclose(table["mean"].iloc[0], draws.states[:, :, 0, 0].mean(), rtol=1e-12)


def test_without_the_library_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    for export in (_draws().to_xarray, _draws().to_arviz):
        with pytest.raises(ImportError, match=r"pip install 'palrnn\[arviz\]'"):
            export()
