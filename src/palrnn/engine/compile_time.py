"""How long this process has spent compiling kernels, which says nothing about the speed of what follows."""

from __future__ import annotations

_spent = 0.0


def add(seconds: float) -> None:
    """Count ``seconds`` of compilation; `palrnn.engine.kernel` does."""
    global _spent
    _spent += seconds


def spent() -> float:
    """Return the seconds counted so far."""
    return _spent
