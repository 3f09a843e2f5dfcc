"""The data of one node, wherever it lives."""

from taxarbor.rows._base import PairProblem, PairSolution, Rows, RuleProblem
from taxarbor.rows._memory import as_rows

__all__ = ["PairProblem", "PairSolution", "Rows", "RuleProblem", "as_rows"]
