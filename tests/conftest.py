"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# the first example of a test may compile a kernel, and a busy machine is no failure; the same examples every
# time
settings.register_profile("palrnn", deadline=None, derandomize=True, database=None)
settings.load_profile("palrnn")
