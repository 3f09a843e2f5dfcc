"""Settings for all tests of the baselines."""

import pytest
from matplotlib import pyplot as plt

from taxarbor._fit_context import one_blas_thread


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """As in a fit: several BLAS threads on few cores make small matrices slow."""
    with one_blas_thread():
        yield


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    plt.close("all")
