"""Run Python as on a processor without AVX-512: our kernels, BLAS and NumPy's own loops.

python torture/narrow.py -m pytest tests/geometry
"""

from __future__ import annotations

import os
import sys

import llvmlite.binding


def narrow_environment() -> dict[str, str]:
    """Return the settings under which Numba, OpenBLAS and NumPy take this processor for a Haswell."""
    # a name alone would leave Numba with all that this processor has
    features = sorted(llvmlite.binding.get_host_cpu_features().items())
    held = [f"{'+' if has and not name.startswith('avx512') else '-'}{name}" for name, has in features]
    return {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": ",".join(held),
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": " ".join(_wide_features()),
    }


def _wide_features() -> list[str]:
    """Return what NumPy calls the wide registers; what it was not built with it must not be told."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    except ImportError:  # it calls them something else now: its sums stay as they are
        return []
    wide = [name for name in __cpu_dispatch__ if "AVX512" in name or name == "X86_V4"]
    return [name for name in wide if __cpu_features__[name]]


if __name__ == "__main__":
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], os.environ | narrow_environment())
