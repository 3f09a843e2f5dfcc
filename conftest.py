"""How Hypothesis draws its examples, in all tests, and that no figure is left."""

import os
import sys

import pytest
from hypothesis import settings

# A busy machine is no bug, and CI must not fail by chance: there, the same examples each time.
FIXED = {"deadline": None, "derandomize": "CI" in os.environ}
settings.register_profile("short", max_examples=30, **FIXED)
settings.register_profile("long", max_examples=200, **FIXED)  # by `make check-long`
settings.load_profile("short")


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures of a test, or of the examples in a docstring."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")
