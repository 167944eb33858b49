"""Compiled kernels of inference: plain arrays in, plain arrays out, no checks (see the room's README)."""
