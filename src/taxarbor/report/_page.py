"""The page itself: one file, without anything that is fetched."""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

SCRIPTS = ("start.js", "tree.js", "panel.js", "search.js", "tables.js", "main.js")


def build_page(context: dict[str, Any], plain_text: str) -> str:
    """Return the page.

    Parameters
    ----------
    context : dict
        What :func:`~taxarbor.report._context.build_context` returns.
    plain_text : str
        The tree as text, for where scripts are off.
    """
    script = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "title": escape(context["title"]),
        "policy": escape(_policy(script)),
        "style": _asset("style.css"),
        "text": escape(plain_text),
        "data": _safe_json(context),
        "script": script,
    }
    # In one go: what is put in is not looked at for further places.
    pieces = _asset("page.html").split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def _policy(script: str) -> str:
    """Let nothing be loaded, and no script run but this one, whatever a name may hold."""
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _safe_json(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return files("taxarbor.report").joinpath("assets", name).read_text(encoding="utf-8")
