"""How sharp each objective is: the ITF Fisher, the observed information by Louis, and their mismatch."""

from palrnn.geometry.bars import Bars, model_bars
from palrnn.geometry.comparison import Mismatch, curvature_gap, mismatch, subspace_overlap
from palrnn.geometry.config import GeometryConfig, InformationConfig
from palrnn.geometry.exact import ExactInformation
from palrnn.geometry.geometries import compare_geometries, observed_information
from palrnn.geometry.gibbs import SandwichPosterior, gibbs_posterior
from palrnn.geometry.information import IndefiniteInformationWarning, ObservedInformation
from palrnn.geometry.itf import ITFOperator, itf_fisher, itf_trace
from palrnn.geometry.likelihood import LikelihoodPosterior, likelihood_posterior
from palrnn.geometry.louis import LouisTerms, louis_terms
from palrnn.geometry.methods import POSTERIORS, parameter_posterior
from palrnn.geometry.observed import ObservedPosterior, observed_posterior
from palrnn.geometry.paper_target import PaperPathDerivatives, paper_path_derivatives
from palrnn.geometry.path_information import PathInformation, path_information
from palrnn.geometry.posterior import (
    InvariantErrorBars,
    LaplacePosterior,
    ModelDraws,
    invariant_error_bars,
    laplace,
)
from palrnn.geometry.sampled import SampledInformation
from palrnn.geometry.summary import GeometryComparison
from palrnn.geometry.toy import ToyInformation, ToyStudy, toy_information, toy_series, toy_study
