"""The same seed gives the same bytes for any number of threads; other BLAS kernels change rounding only."""

from __future__ import annotations

import pytest

from torture.repeat import compared


@pytest.fixture(scope="module")
def differences():
    return compared(
        one={"OPENBLAS_NUM_THREADS": "1"},
        two={"OPENBLAS_NUM_THREADS": "2", "TORTURE_THREADS": "2", "NUMBA_NUM_THREADS": "2"},
        other={"OPENBLAS_CORETYPE": "Haswell"},
    )


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_threads(differences):
    assert set(differences["two"].values()) == {0.0}


def test_another_blas_changes_rounding_only(differences):
    # single precision over 200 updates of training; double precision for the rest
    assert differences["other"].pop("training") < 1e-4
    assert max(differences["other"].values()) < 1e-9
