"""The API reference lists exactly the public names of the packages, with examples."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import taxarbor

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "api"
NAMES = (
    "taxonomy tree exchange explain stability metrics plot report data tables grow split rows"
)
PUBLIC = ["taxarbor", *(f"taxarbor.{name}" for name in NAMES.split())]
INTERNAL = ["cli", "clusters", "estimators", "native", "optim", "rules", "sources"]
"""Not in the reference; the estimators are on the page of the top package."""
MAX_NAMES = 70
"""Public names of all packages."""
ENTRY = re.compile(r"^   (\w+)$", re.M)
ELSEWHERE = re.compile(r":obj:`~taxarbor\.(\w+)`")


def public_names():
    """Return each public name once, with what it is."""
    return {
        name: getattr(importlib.import_module(package), name)
        for package in PUBLIC
        for name in importlib.import_module(package).__all__
    }


def test_a_page_lists_what_the_package_has():
    """Its own entries, and the names that are documented with the top package."""
    for name in PUBLIC:
        text = (FOLDER / f"{name}.rst").read_text("utf-8")
        assert f".. currentmodule:: {name}\n" in text
        own, others = ENTRY.findall(text), ELSEWHERE.findall(text)
        assert len(set(own + others)) == len(own + others), name
        assert set(own + others) == set(importlib.import_module(name).__all__), name
        assert set(others) <= set(taxarbor.__all__), name


def test_the_reference_has_these_packages():
    pages = {path.stem for path in FOLDER.glob("*.rst")} - {"index"}
    index = (FOLDER / "index.rst").read_text("utf-8")
    assert re.findall(r"^   (taxarbor\S*)$", index, re.M) == PUBLIC
    assert pages == set(PUBLIC)
    there = {found.name for found in pkgutil.iter_modules(taxarbor.__path__, "taxarbor.")}
    public = {name for name in there if not name.startswith("taxarbor._")}
    assert public == {*PUBLIC[1:], *(f"taxarbor.{name}" for name in INTERNAL)}
    assert all(f"``{name}``" in index for name in INTERNAL)


def test_every_public_name_has_an_example():
    """Which the tests run, as all examples in docstrings."""
    names = public_names()
    assert 40 < len(names) <= MAX_NAMES
    lacking = [
        name
        for name, thing in names.items()
        if inspect.isroutine(thing) or inspect.isclass(thing)
        if not (inspect.isclass(thing) and issubclass(thing, Exception))
        if not getattr(thing, "_is_protocol", False)
        if "\nExamples\n--------\n>>> " not in (inspect.getdoc(thing) or "")
    ]
    assert not lacking
