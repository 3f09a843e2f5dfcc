"""JSON of any depth: the standard library recurses, and gives up at some 500 levels."""

import json
import re
from collections.abc import Generator
from typing import Any

_GAP = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_CLOSING = {"{": "}", "[": "]"}


def read_json(text: str) -> Any:
    """Return what :func:`json.loads` does, or would if it had no limit to the depth.

    Raises
    ------
    ValueError
        If the text is not JSON; the message says where.
    """
    try:
        return json.loads(text)
    except RecursionError:
        return read_deep_json(text)


def read_deep_json(text: str) -> Any:
    """Read JSON of any depth, several times as slowly as the standard library."""
    value, end = _read_value(text, _skip(text, 0))
    if _skip(text, end) < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _read_value(text: str, position: int) -> Any:
    """Return a value and where it ends.

    A container says where the next of its values begins, and is sent that value and where it
    ends. Those that wait for one are on a stack.
    """
    waiting: list[Generator[int, Any, Any]] = []
    while True:
        found: Any = None
        if text[position : position + 1] in _CLOSING:
            waiting.append(_read_container(text, position))
        else:
            found = _DECODER.raw_decode(text, position)
        while waiting:
            try:
                position = waiting[-1].send(found)
                break
            except StopIteration as finished:
                waiting.pop()
                found = finished.value
        else:
            return found


def _read_container(text: str, position: int) -> Generator[int, Any, Any]:
    closing = _CLOSING[text[position]]
    keys: list[str] = []
    values: list[Any] = []
    position = _skip(text, position + 1)
    while values or text[position : position + 1] != closing:
        if closing == "}":
            key, position = _read_key(text, position)
            keys.append(key)
        value, position = yield position
        values.append(value)
        position = _skip(text, position)
        if text[position : position + 1] == closing:
            break
        position = _pass(text, position, ",")
    return (values if closing == "]" else dict(zip(keys, values, strict=True))), position + 1


def _read_key(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise json.JSONDecodeError("Expecting a name in double quotes", text, position)
    key, position = _DECODER.raw_decode(text, position)
    return key, _pass(text, _skip(text, position), ":")


def _pass(text: str, position: int, mark: str) -> int:
    """Return where to go on after a mark that must be here."""
    if text[position : position + 1] != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r}", text, position)
    return _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    found = _GAP.match(text, position)
    return found.end() if found else position
