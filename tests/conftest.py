"""Settings for all tests."""

import os
import signal

import pytest
from hypothesis import settings

# A busy machine is no bug, and CI must not fail by chance: there, the same examples each time.
settings.register_profile("taxarbor", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("taxarbor")


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise KeyboardInterrupt, also where whoever runs these tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
