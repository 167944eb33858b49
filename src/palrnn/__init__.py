"""palrnn: dynamical systems reconstruction with almost-linear RNNs, and the geometry of what trained them.

Public names are loaded on first use, so that ``import palrnn`` and ``palrnn --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_ROOMS = {
    "data": """
        Dataset SeriesError Standardizer add_observation_noise autocorrelation delay_embed load_series
        load_trials lorenz63 lorenz96 noise_level rossler smoothed subsequences suggest_lags
        suggest_tau suggest_windows train_test_split windows
    """,
    "model": """
        ALRNN PALRNN Checkpoint CheckpointError ClippedShallowPLRNN Forcing Noise ObservationMap
        PiecewiseAffine Rollout ShallowPLRNN Surrogate SurrogateError check_surrogate export_onnx
        export_torch import_julia import_torch initial_alrnn load_checkpoint register_family
        save_checkpoint
    """,
    "invariants": """
        LyapunovSpectrum StateSpaceDivergence Verdict Viability cycles dstsp dstsp_floor fixed_points
        lyapunov_spectrum prediction_error quantities_of_interest spectrum_distance spectrum_floor
        spread_starts stochastic_counterparts symbolic_dynamics valid_prediction_time viability
    """,
    "forcing": """
        Evaluation Gradient History TrainConfig TrainResult TrainingDivergedError free_running_evaluation
        itf_gradient itf_loss polish train train_many
    """,
    "inference": """
        BandCalibration Evidence FewPathsWarning FilterConfig FilterDiedError Filtered Forecast PathPosterior
        SampleConfig Smoothed Stepper path_posterior rbpf resample smooth windowed_evidence
    """,
    "geometry": """
        Bars GeometryComparison GeometryConfig ITFOperator IndefiniteInformationWarning InformationConfig
        LaplacePosterior LikelihoodPosterior Mismatch ObservedInformation ObservedPosterior
        PaperPathDerivatives PathInformation SandwichPosterior compare_geometries curvature_gap
        gibbs_posterior invariant_error_bars itf_fisher itf_trace laplace likelihood_posterior louis_terms
        mismatch model_bars observed_information observed_posterior paper_path_derivatives
        parameter_posterior path_information subspace_overlap
        toy_information toy_series toy_study
    """,
    "tuning": """
        Comparison NoiseFit NoiseFitConfig SAEMConfig SAEMResult TuningHistory compare comparison_configs
        fit_noise heldout_evaluation lorenz63_sequences saem
    """,
    "paper": "load_from_zoo zoo_models",
    "runs": "Reconstruction ReportSettings reconstruct",
    "ensembles": "Ensemble bootstrap",
    "searches": "SearchResult search",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"palrnn.{_HOME[name]}"), name)
    raise AttributeError(f"module 'palrnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from palrnn.data import *  # noqa: F403
    from palrnn.ensembles import *  # noqa: F403
    from palrnn.forcing import *  # noqa: F403
    from palrnn.geometry import *  # noqa: F403
    from palrnn.inference import *  # noqa: F403
    from palrnn.invariants import *  # noqa: F403
    from palrnn.model import *  # noqa: F403
    from palrnn.paper import *  # noqa: F403
    from palrnn.runs import *  # noqa: F403
    from palrnn.searches import *  # noqa: F403
    from palrnn.tuning import *  # noqa: F403
