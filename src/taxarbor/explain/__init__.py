"""Why rows are where they are: features, examples, margins, and the path of each row."""

from taxarbor.explain._explanation import Explanation, explain

__all__ = ["Explanation", "explain"]
