"""Formulas as MathML, which browsers draw themselves: there is nothing to load."""

from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

FAILED = "merror"


def to_mathml(latex: str, *, is_block: bool) -> str:
    """Return a formula as a ``math`` element.

    Raises
    ------
    ValueError
        If a command is not known: it would be shown as it is written.
    """
    element = convert(latex.strip(), display="block" if is_block else "inline")
    shown = "".join(ElementTree.fromstring(element).itertext())
    if "\\" in shown or FAILED in element:
        raise ValueError(f"no MathML for all of {latex!r}: {shown!r}")
    return element


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(to_mathml(node.astext(), is_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    writer.body.append(f'<div class="formula">{to_mathml(node.astext(), is_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
