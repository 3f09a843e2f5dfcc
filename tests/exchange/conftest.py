"""The trees to test with are those of the hierarchy's own tests."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

PATH = Path(__file__).parents[1] / "taxonomy" / "conftest.py"
SPEC = spec_from_file_location("hierarchy_trees", PATH)
trees_of = module_from_spec(SPEC)
SPEC.loader.exec_module(trees_of)

assessed, bare, builder, chain, known, add_means, refused, same, trees = (
    getattr(trees_of, name)
    for name in (
        *("assessed", "bare", "builder", "chain", "known", "add_means", "refused"),
        *("same", "trees"),
    )
)
