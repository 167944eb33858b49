"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# what JAX compiles here runs a few times: optimising it takes longer than it saves
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# the first example of a test may compile a kernel, and a busy machine is no failure; the same examples every
# time
settings.register_profile("palrnn", deadline=None, derandomize=True, database=None)
settings.load_profile("palrnn")
