"""How sharp each objective is: the ITF Fisher, the observed information by Louis, and their mismatch."""

from palrnn.geometry.itf import ITFOperator, itf_fisher, itf_trace

__all__ = ["ITFOperator", "itf_fisher", "itf_trace"]
