"""Why rows are where they are: features, examples, margins, and the path of each row."""

from taxarbor.explain._explain import explain
from taxarbor.explain.explanation import Explanation

__all__ = ["Explanation", "explain"]
