"""The library's words, as somebody at a terminal knows them: options, and no parameters."""

import re

_EVERYWHERE = (
    (r"\bwith format=", "with --format"),
    (r"^the stream ", "standard input "),
    (r"^n_clusters must be", "-k must be"),
    (r"^depth must be", "--depth must be"),
    (r"\bclasses in y\b", "classes of the rows"),
    (r"\bgive classes, too", "give --label-column, too"),
    (r"^X (varies .*; (?:multiply|divide)) X by", r"the table \1 it by"),
    (r"(?<![\d.,])1 (row|column|feature|group|cluster)s\b", r"1 \1"),
    (r"(?<![\d.,])1 leaves\b", "1 leaf"),
    (r"(?<![\d.,])1 classes\b", "1 class"),
)
_IDENTIFIER = "name it in columns= to use it, or as id_column= to show it"
_FIT = (
    (_IDENTIFIER, "name it with --columns to use it, or --id-column to show it"),
    (r"\bwith columns=", "with --columns"),
    (r"^columns (has|must)", r"--columns \1"),
)
_ELSEWHERE = (
    (f"; {_IDENTIFIER}", ""),
    (
        r"\bfill or drop them, or leave the columns out with columns=",
        "fill them, or leave these rows out",
    ),
    (r"\bmend it, or leave the column out with columns=", "mend it"),
    (
        r"^columns has (.*), which is the id or label column",
        r"the model has the feature \1, which cannot be the id or label column as well",
    ),
)
"""The columns that other commands than fit use are those of the model."""


def in_options(message: str, command: str | None) -> str:
    """Name a command's options where the library names its parameters."""
    for library, here in _EVERYWHERE + (_FIT if command == "fit" else _ELSEWHERE):
        message = re.sub(library, here, message)
    return message
