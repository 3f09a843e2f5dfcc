"""Compiled kernels: the data of a node, and free functions on it and on plain arrays.

Each checks what it gets and raises ValueError with what came and what was expected. What they
compute is documented in their C++ sources.
"""

from taxarbor.native._kernels import (
    Data,
    adjoint,
    assign_flow,
    assign_pair,
    best,
    distances,
    gram,
    halve,
    hashes,
    hinge_costs,
    hinge_multi,
    kway,
    label_sums,
    lloyd,
    norms,
    pair,
    plane_scores,
    principal,
    route,
    scores,
    sort_by_label,
    spread,
    ward,
    ward_links,
)

__all__ = [
    "Data",
    "adjoint",
    "assign_flow",
    "assign_pair",
    "best",
    "distances",
    "gram",
    "halve",
    "hashes",
    "hinge_costs",
    "hinge_multi",
    "kway",
    "label_sums",
    "lloyd",
    "norms",
    "pair",
    "plane_scores",
    "principal",
    "route",
    "scores",
    "sort_by_label",
    "spread",
    "ward",
    "ward_links",
]
