"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Run by ``make oldest``, from the root of a checkout.
"""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def minima(project: dict) -> list[str]:
    """Return one line, ``name==version``, for each requirement."""
    extras = project["project"]["optional-dependencies"].values()
    declared = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *extras,
    ]
    named = [one for part in declared for one in part if not one.startswith("taxarbor[")]
    pairs = [one.split(">=") for one in named]  # one without a lowest version ends here
    return [f"{name.partition('[')[0]}=={version}" for name, version in pairs]


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in minima(tomllib.loads(PROJECT.read_text())))
