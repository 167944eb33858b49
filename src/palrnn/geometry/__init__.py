"""How sharp each objective is: the ITF Fisher, the observed information by Louis, and their mismatch."""

from palrnn.geometry.itf import ITFOperator, itf_fisher, itf_trace
from palrnn.geometry.toy import ToyInformation, ToyStudy, toy_information, toy_series, toy_study

__all__ = [
    "ITFOperator",
    "ToyInformation",
    "ToyStudy",
    "itf_fisher",
    "itf_trace",
    "toy_information",
    "toy_series",
    "toy_study",
]
