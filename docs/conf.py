"""Configuration of ``make docs``; nothing is downloaded."""

import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import matplotlib as mpl
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder

import taxarbor

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
mpl.use("Agg")

project = "taxarbor"
author = "The taxarbor developers"
copyright = "The taxarbor developers"
version = release = taxarbor.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "results", "api/generated/backreferences"]
templates_path = ["_templates"]

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# The reference: types are in the docstrings.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
napoleon_google_docstring = False
napoleon_use_ivar = False
napoleon_use_rtype = False

# Looks
html_theme = "furo"
html_title = f"taxarbor {release}"
html_theme_options = {  # code of 96 characters fits the column
    name: {"code-font-size": "0.76em"} for name in ("light_css_variables", "dark_css_variables")
}
html_static_path = ["_static"]
html_css_files = ["own.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
pygments_style = "default"
pygments_dark_style = "github-dark"

# The examples, which are run.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": ExplicitOrder(
        [
            "plot_animals.py",
            "plot_measurements.py",
            "plot_patients.py",
            "plot_survey.py",
            "plot_outliers.py",
            "plot_digits.py",
            "plot_cells.py",
            "plot_text.py",
            "plot_pictures.py",
        ]
    ),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 10**6,
    "write_computation_times": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
}


def unlink_plain_words(app: Sphinx, doctree: nodes.document) -> None:
    """Keep ``array of shape (n_features,)`` from becoming a link to something of that name."""
    for link in list(doctree.findall(pending_xref)):
        target = link["reftarget"]
        if link["reftype"] == "class" and target.islower() and "." not in target:
            link.replace_self(link.children)


def describe_data(app: Sphinx, what: str, name: str, given: Any, *rest: Any) -> None:
    """Describe a constant or type alias by its value rather than by its class."""
    _, lines = rest
    is_borrowed = given.__doc__ == "\n".join(lines).strip() or get_origin(given) is not None
    if what != "data" or not is_borrowed:
        return
    lines.clear()
    if get_origin(given) is Literal:
        lines.append(f"One of {', '.join(f'``{choice!r}``' for choice in get_args(given))}.")
    elif isinstance(given, int | float | tuple):
        lines.append(f"``{given!r}``")


def setup(app: Sphinx) -> None:
    """Register the handlers."""
    app.connect("doctree-read", unlink_plain_words)
    app.connect("autodoc-process-docstring", describe_data)
