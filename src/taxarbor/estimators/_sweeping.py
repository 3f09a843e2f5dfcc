"""One fit of ours, by sweeps over blocks of rows, from its beginning to its end."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from taxarbor._blas import one_blas_thread
from taxarbor._errors import InputError, counted
from taxarbor._progress import show_progress
from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.estimators._progress import call_back, observe_all
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, Placement
from taxarbor.hierarchy._route import arranged, place
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.refine import Clusters, Coordinates, Leafing, Survey, find_outliers
from taxarbor.rows._memory import seen_from
from taxarbor.sweep import Blocks, Column, LocalEngine, blocks_of
from taxarbor.sweep._copies import Copies
from taxarbor.tables._checks import check_jobs, check_weights
from taxarbor.tables._training import Training
