"""What the machine lends, unless Numba is told to use less of it."""

from __future__ import annotations

import os

import llvmlite.binding
import pytest
from numba import config

from palrnn.engine.processors import available_processors, has_wide_registers


def test_as_many_processors_as_this_process_may_use():
    assert 1 <= available_processors() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("name", "features", "wide"),
    [
        ("haswell", "+avx2,+fma", False),
        ("skylake-avx512", "+avx2,+avx512f,+avx512dq", True),
        ("skylake-avx512", "+avx2,-avx512f", False),
        ("generic", None, False),
    ],
)
def test_numba_settings_decide_about_wide_registers(monkeypatch, name, features, wide):
    monkeypatch.setattr(config, "CPU_NAME", name)
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    assert has_wide_registers() is wide


def test_no_wide_registers_without_avx(monkeypatch):
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(config, "ENABLE_AVX", 0)
    assert has_wide_registers() is False


def test_the_processor_decides_where_numba_has_no_settings(monkeypatch):
    monkeypatch.setattr(config, "CPU_NAME", None)
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(config, "ENABLE_AVX", 1)
    for known in (True, False):
        monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda known=known: {"avx512f": known})
        assert has_wide_registers() is known

    def unknown():
        raise RuntimeError

    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", unknown)
    assert has_wide_registers() is False
