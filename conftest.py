"""How Hypothesis draws its examples, in all tests."""

import os

from hypothesis import settings

# A busy machine is no bug, and CI must not fail by chance: there, the same examples each time.
FIXED = {"deadline": None, "derandomize": "CI" in os.environ}
settings.register_profile("short", max_examples=30, **FIXED)
settings.register_profile("long", max_examples=200, **FIXED)  # by `make check-long`
settings.load_profile("short")
