"""Run Python as on a processor without AVX-512: our kernels, BLAS and NumPy's own loops.

python torture/narrow.py -m pytest tests/geometry
"""

from __future__ import annotations

import os
import sys


def narrow_environment() -> dict[str, str]:
    """Return the settings under which Numba, OpenBLAS and NumPy take this processor for a Haswell."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    except ImportError:  # NumPy calls it something else: its sums stay as they are
        wide = []
    else:
        # what NumPy was not built with, or the processor lacks, must not be named
        wide = [
            name
            for name in __cpu_dispatch__
            if ("AVX512" in name or name == "X86_V4") and __cpu_features__[name]
        ]
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(wide),
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
    }


if __name__ == "__main__":
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], os.environ | narrow_environment())
