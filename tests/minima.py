"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Run by ``make oldest``, from the root of a checkout.
"""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def list_minima(project: dict) -> list[str]:
    """Return a line ``name==version`` for each requirement; each must have a lowest version."""
    groups = [project["build-system"]["requires"], project["project"]["dependencies"]]
    groups += project["project"]["optional-dependencies"].values()
    requirements = [line for group in groups for line in group]
    pairs = [line.split(">=") for line in requirements if not line.startswith("taxarbor[")]
    return [f"{name.partition('[')[0]}=={version}" for name, version in pairs]


if __name__ == "__main__":
    minima = list_minima(tomllib.loads(PROJECT.read_text(encoding="utf-8")))
    sys.stdout.writelines(f"{line}\n" for line in minima)
