"""Trees in Newick format: ``((cat,dog)mammal,owl)animal;``.

Inner names are optional. Branch lengths and comments in brackets are skipped, and underscores
stay underscores. A name may hold blanks; one that holds any of ``()[]:;,'`` is quoted, with
quotes inside it doubled. The reader keeps track of open nodes by itself, so that trees may be
of any depth.
"""

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NoReturn, final

_PLAIN = re.compile(r"[^()\[\]:;,']+")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_BRACKET = re.compile(r"[\[\]]")
_BLANK = re.compile(r"\s+")


def read_newick(text: str) -> tuple[list[int], list[str]]:
    """Read a tree.

    Returns
    -------
    parents : list of int
        The parent of each node, -1 for the root; a parent comes before its children.
    names : list of str
        The name of each node, "" where it has none.

    Raises
    ------
    ValueError
        If the text is no tree; the message says where.
    """
    reader = _Reader(text)
    while reader.position < len(text):
        reader.read_token()
    if not reader.ended:
        reader.end()  # a missing semicolon does no harm
    return reader.parents, reader.names


class _Stage(IntEnum):
    """What has been read of a node."""

    NOTHING = 0
    CHILDREN = 1
    NAME = 2
    LENGTH = 3


@final
@dataclass(slots=True)
class _Reader:
    """What has been read of the text."""

    text: str
    position: int = 0
    node: int = 0
    stage: _Stage = _Stage.NOTHING  # of that node
    ended: bool = False
    parents: list[int] = field(default_factory=lambda: [-1])
    names: list[str] = field(default_factory=lambda: [""])
    n_children: list[int] = field(default_factory=lambda: [0])

    def read_token(self) -> None:
        char = self.text[self.position]
        if blank := _BLANK.match(self.text, self.position):
            self.position = blank.end()
        elif char == "[":
            self.skip_comment()
        elif self.ended:
            self.fail("text after the end; there may be one tree only")
        elif char in "(),:;":
            self.read_mark(char)
        else:
            self.read_name(char)

    def read_mark(self, char: str) -> None:
        if char == "(":
            self.open()
        elif char == ",":
            self.add_child(self.leave(char))
        elif char == ")":
            self.node, self.stage = self.leave(char), _Stage.CHILDREN
        elif char == ";":
            self.end()
        self.position += 1
        if char == ":":
            self.skip_length()

    def open(self) -> None:
        if self.stage is not _Stage.NOTHING:
            self.fail("a '(' may stand at the start and after another '(' or a ',' only")
        self.add_child(self.node)

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
        self.node, self.stage = len(self.parents), _Stage.NOTHING
        self.parents.append(parent)
        self.names.append("")
        self.n_children.append(0)
        self.n_children[parent] += 1

    def read_name(self, char: str) -> None:
        if char == "]":
            self.fail("a ']' without a '['")
        if self.stage >= _Stage.NAME:
            self.fail("a second name for one node; quote a name that holds any of ()[]:;,'")
        found = (_QUOTED if char == "'" else _PLAIN).match(self.text, self.position)
        if found is None:
            self.fail("a quote that is not closed")
        name = found[1].replace("''", "'") if char == "'" else found[0].strip()
        self.names[self.node], self.stage = name, _Stage.NAME
        self.position = found.end()

    def skip_length(self) -> None:
        while self.text[self.position : self.position + 1] in {"[", " ", "\t", "\r", "\n"}:
            self.read_token()
        found = _PLAIN.match(self.text, self.position)
        if found is None or not _is_number(found[0]) or self.stage is _Stage.LENGTH:
            self.fail("one branch length, a number, must follow a ':'")
        self.stage, self.position = _Stage.LENGTH, found.end()

    def skip_comment(self) -> None:
        depth = 0
        for bracket in _BRACKET.finditer(self.text, self.position):
            depth += 1 if bracket[0] == "[" else -1
            if depth == 0:
                self.position = bracket.end()
                return
        self.fail("a comment that is not closed")

    def check_leaf(self) -> None:
        if self.n_children[self.node] == 0 and not self.names[self.node]:
            self.fail("a leaf without a name")

    def fail(self, what: str) -> NoReturn:
        near = self.text[max(self.position - 20, 0) : self.position + 20]
        raise ValueError(
            f"not a tree in Newick format: {what} (at character {self.position + 1}, "
            f"near {near!r})"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
