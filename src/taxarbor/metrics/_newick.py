"""Trees in Newick format: ``((cat,dog)mammal,owl)animal;``.

Inner names are optional. Branch lengths and comments in brackets are skipped, and underscores
stay underscores. A name may hold blanks; one that holds any of ``()[]:;,'`` is quoted, with
quotes inside it doubled. Our own reader, as none of the packages we depend on has one; it does
not recurse, so trees may be of any depth.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn, final

from taxarbor._errors import InputError

_PLAIN = re.compile(r"[^()\[\]:;,']+")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_BRACKET = re.compile(r"[\[\]]")
_BLANK = re.compile(r"\s*")
_NOTHING, _CHILDREN, _NAME, _LENGTH = range(4)  # what has been read of a node


def read_newick(text: str) -> tuple[list[int], list[str]]:
    """Return the parent of each node, -1 for the root, and its name, "" if it has none.

    Parents come before their children. Raises ValueError, with the place, for other text.
    """
    reader = _Reader(text)
    while reader.skip():
        reader.read_token()
    if not reader.ended:
        reader.end()  # a missing semicolon does no harm
    return reader.parents, reader.names


@final
@dataclass(slots=True)
class _Reader:
    """What has been read of the text."""

    text: str
    position: int = 0
    node: int = 0
    stage: int = _NOTHING  # of that node
    ended: bool = False
    parents: list[int] = field(default_factory=lambda: [-1])
    names: list[str] = field(default_factory=lambda: [""])
    inner: set[int] = field(default_factory=set)

    def skip(self) -> bool:
        """Pass over blanks and comments; say whether anything is left."""
        while True:
            blank = _BLANK.match(self.text, self.position)
            self.position = blank.end() if blank else self.position
            if self.text[self.position : self.position + 1] != "[":
                return self.position < len(self.text)
            depth = 0
            for bracket in _BRACKET.finditer(self.text, self.position):
                depth += 1 if bracket[0] == "[" else -1
                if depth == 0:
                    self.position = bracket.end()
                    break
            else:
                self.fail("a comment that is not closed")

    def read_token(self) -> None:
        char = self.text[self.position]
        if self.ended:
            self.fail("text after the end; there may be one tree only")
        if char not in "(),:;":
            self.read_name(char)
            return
        if char == "(":
            if self.stage != _NOTHING:
                self.fail("a '(' may only come first, or after another '(' or a ','")
            self.add_child(self.node)
        elif char == ",":
            self.add_child(self.leave(char))
        elif char == ")":
            self.node, self.stage = self.leave(char), _CHILDREN
        elif char == ";":
            self.end()
        self.position += 1
        if char == ":":
            self.skip_length()

    def leave(self, char: str) -> int:
        """Return the parent of a node that is complete."""
        parent = self.parents[self.node]
        if parent < 0:
            self.fail(f"a {char!r} outside of all parentheses")
        self.check_leaf()
        return parent

    def end(self) -> None:
        if self.parents[self.node] >= 0:
            self.fail("the tree ends before all parentheses are closed")
        self.check_leaf()
        self.ended = True

    def add_child(self, parent: int) -> None:
        self.node, self.stage = len(self.parents), _NOTHING
        self.parents.append(parent)
        self.names.append("")
        self.inner.add(parent)

    def read_name(self, char: str) -> None:
        if char == "]":
            self.fail("a ']' without a '['")
        if self.stage >= _NAME:
            self.fail("a second name for one node; quote a name that holds any of ()[]:;,'")
        found = (_QUOTED if char == "'" else _PLAIN).match(self.text, self.position)
        if found is None:
            self.fail("a quote that is not closed")
        name = found[1].replace("''", "'") if char == "'" else found[0].strip()
        self.names[self.node], self.stage, self.position = name, _NAME, found.end()

    def skip_length(self) -> None:
        self.skip()
        found = _PLAIN.match(self.text, self.position)
        try:
            float(found[0] if found and self.stage != _LENGTH else "none")
        except ValueError:
            self.fail("one branch length, a number, must follow a ':'")
        self.stage, self.position = _LENGTH, found.end() if found else self.position

    def check_leaf(self) -> None:
        if self.node not in self.inner and not self.names[self.node]:
            self.fail("a leaf without a name")

    def fail(self, what: str) -> NoReturn:
        near = self.text[max(self.position - 20, 0) : self.position + 20]
        raise InputError(
            f"not a tree in Newick format: {what} (at character {self.position + 1}, "
            f"near {near!r})"
        )
