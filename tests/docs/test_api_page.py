"""The reference lists what the packages have, all of it and nothing else."""

import importlib
import re
from pathlib import Path

import pytest

import taxarbor

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "api"
PUBLIC = [
    "taxarbor",
    "taxarbor.hierarchy",
    "taxarbor.explain",
    "taxarbor.metrics",
    "taxarbor.plot",
    "taxarbor.report",
    "taxarbor.data",
    "taxarbor.split",
    "taxarbor.rows",
    "taxarbor.optim",
    "taxarbor.assign",
]
ENTRY = re.compile(r"^   (\w+)$", re.M)
ELSEWHERE = re.compile(r":obj:`~taxarbor\.(\w+)`")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_page_lists_what_the_package_has(name):
    """Its own entries, and the names that are documented with the top package."""
    text = (FOLDER / f"{name}.rst").read_text("utf-8")
    assert f".. currentmodule:: {name}\n" in text
    own, others = ENTRY.findall(text), ELSEWHERE.findall(text)
    assert len(set(own + others)) == len(own + others)
    assert set(own + others) == set(importlib.import_module(name).__all__)
    assert set(others) <= set(taxarbor.__all__)


def test_the_reference_has_these_packages():
    pages = {path.stem for path in FOLDER.glob("*.rst")} - {"index"}
    index = (FOLDER / "index.rst").read_text("utf-8")
    assert re.findall(r"^   (taxarbor\S*)$", index, re.M) == PUBLIC
    assert pages == set(PUBLIC)
