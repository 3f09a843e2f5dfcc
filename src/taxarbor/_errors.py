"""Errors and warnings of taxarbor."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

MAX_MESSAGE = 1000  # characters of a message: names and cells of files may have any number


class TaxarborError(Exception):
    """Base of the errors that only taxarbor raises."""


class InputError(TaxarborError, ValueError):
    """The input cannot be used; the message says why, and what to do.

    With a parameter, the problem is the sentence that follows its name; the command line names
    its option instead.
    """

    def __init__(self, problem: str, parameter: str | None = None) -> None:
        self.problem, self.parameter = problem, parameter
        super().__init__(self.message())

    def message(self, name: Callable[[str], str | None] | None = None) -> str:
        """Return the message; ``name`` returns the option of a parameter, None without one."""
        called = None if name is None or self.parameter is None else name(self.parameter)
        called = called or self.parameter
        return shorten(self.problem if called is None else f"{called} {self.problem}")


class InputTypeError(InputError, TypeError):
    """The input is of a type that cannot be used."""


class FileFormatError(InputError):
    """A file is damaged, of another kind, or of a version that this one cannot read."""


class GrowthWarning(UserWarning):
    """The tree is not as requested: it has fewer leaves, or other sizes; it says why."""


class TableWarning(UserWarning):
    """A table was changed before the fit: missing values filled, columns scaled or left out."""


@contextmanager
def named_by(title: str | None) -> Iterator[None]:
    """Let an error begin with the title of the part that it is about."""
    try:
        yield
    except InputError as error:
        if title is None:
            raise
        raise type(error)(f"{title}: {error}") from error


@contextmanager
def require(what: str, *packages: str) -> Iterator[None]:
    """Let the error of an import say what needs the packages, and how to install them."""
    try:
        yield
    except ImportError as error:
        command = f"pip install {' '.join(packages)}"
        raise ImportError(f"{what} needs {' and '.join(packages)}: {command}") from error


def counted(number: int, what: str, many: str | None = None) -> str:
    """Return ``1 row``, ``12 rows``, ``1,200 rows``; ``many`` where that is no ``s`` more."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def some(texts: Sequence[str], most: int) -> str:
    """Return ``a, b and 7 more``."""
    listing, n_more = ", ".join(texts[:most]), len(texts) - most
    return f"{listing} and {n_more} more" if n_more > 0 else listing


def shorten(message: str) -> str:
    """Return a message in one line of printable characters; a long one without its middle."""
    text, half = printable(message), MAX_MESSAGE // 2
    return text if len(text) <= MAX_MESSAGE else f"{text[:half]} ... {text[5 - half :]}"


def printable(text: str) -> str:
    """Return the text on one line, without control characters or half characters."""
    if text.isprintable():  # as nearly all are
        return text
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in whole)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, in some lines, at the line of the user's code that called into taxarbor."""
    level = 1
    frame = sys._getframe()
    ours = ("taxarbor.", "sklearn.base")  # which wraps the methods of estimators
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(ours):
        frame = frame.f_back
        level += 1
    warnings.warn("\n".join(map(shorten, message.split("\n"))), category, stacklevel=level)
