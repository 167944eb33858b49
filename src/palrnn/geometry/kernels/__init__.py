"""Kernels of the geometry: functions on plain arrays, without checks."""
