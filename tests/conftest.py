"""Settings for all tests."""

import os

from hypothesis import settings

# A busy machine is no bug, and CI must not fail by chance: there, the same examples each time.
settings.register_profile("taxarbor", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("taxarbor")
