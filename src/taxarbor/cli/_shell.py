"""What every command does: one line and an exit code where something is wrong, JSON, notes.

0 is success, 2 is bad input, 130 is an interrupt, 143 SIGTERM. All else is a mistake of ours: a
traceback, and exit code 1.
"""

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EIO
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from taxarbor._errors import FULL, ClusterError, InputError, printable
from taxarbor.cli import BAD_INPUT, interrupted_code, was_interrupted

UsageError: Any = typer.BadParameter.__mro__[1]
"""What typer raises for options it does not know; of which class depends on its version."""
CALLED = {
    **{"random_state": "seed", "n_jobs": "jobs", "sample_weight": "weights"},
    **{"categorical_features": "categories", "date_features": "dates"},
}
"""Parameters whose options have other names."""
UNMAPPED = "failed to map segment"
"""What the system says where there is no room for a library."""
LEAST_SPACE = 800_000_000
"""Bytes of address space without which OpenBLAS, while it is loaded, tries forever to get what
it wants. What a fit needs beyond that is checked in ``_blas.py``."""


class Commands(TyperGroup):
    """Commands that end with one line on standard error where input is bad."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Parse what was typed and run it, then exit."""
        run: Any = super().main
        try:
            code = run(*arguments, **options | {"standalone_mode": False})
        except UsageError as error:
            message = error.format_message()
            if "\n" in message:  # nothing was typed, and this is the help
                error.show()
            elif message:  # else the help is there already
                command = "taxarbor" if error.ctx is None else error.ctx.command_path
                _say_aside(f"{message} See {command} --help")
            code = BAD_INPUT
        except typer.Abort:
            code = interrupted_code()
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            _check_space()
            result = super().invoke(ctx)
            if sys.stdout is not None:  # as it is where somebody closed it
                sys.stdout.flush()  # here, where a closed pipe is no news to anybody
        except (BrokenPipeError, typer.Exit, typer.Abort, UsageError):
            raise  # `| head` has seen enough: typer ends quietly, as it does for the others
        except KeyboardInterrupt:
            refuse("interrupted", interrupted_code())
        except Exception as error:
            told = _told(error, self._options(ctx))
            # A library may have made another error of it, and the terminal may be gone.
            if was_interrupted() and (told is None or _is_of_terminal(error)):
                refuse("interrupted", interrupted_code())
            if told is None:
                raise
            refuse(told)
        return result

    def _options(self, ctx: Any) -> Callable[[str], str | None]:
        """Return what says how the command that runs calls a parameter of the library."""
        command = self.get_command(ctx, ctx.invoked_subcommand)
        params = [] if command is None else command.params
        found = {param.name: max(param.opts, key=len) for param in params}
        options = {name: text for name, text in found.items() if text.startswith("--")}
        return lambda name: (options | {"X": "the table"}).get(CALLED.get(name, name))


def _told(error: Exception, options: Callable[[str], str | None]) -> str | None:
    """Return what to say of an error, None if it is a mistake of ours."""
    told = None
    if isinstance(error, MemoryError) or UNMAPPED in str(error):
        told = "there is not enough memory: take fewer rows or columns"
    elif isinstance(error, InputError):
        told = error.told(options)
    elif isinstance(error, ClusterError):
        told = str(error)
    elif isinstance(error, ImportError) and not was_interrupted():
        package = (error.name or "").partition(".")[0]
        if package != "taxarbor":
            is_told = "pip install" in str(error) or not package
            told = str(error) if is_told else f"{error}: pip install {package}"
    elif isinstance(error, FileExistsError):  # it came after the outputs were checked
        told = f"{error.filename} is there already; --force replaces it"
    elif isinstance(error, OSError):
        told, name = error.strerror or str(error), error.filename
        if name is None and error.errno in FULL and told == os.strerror(error.errno):
            name = "standard output"  # files are named
        told = told if name is None else f"{name}: {told}"
    return told


def _is_of_terminal(error: Exception) -> bool:
    """Say whether a terminal that was closed could not be written to; files are named."""
    return isinstance(error, OSError) and error.errno == EIO and error.filename is None


def _check_space() -> None:
    """Refuse an address space in which libraries may hang while they are loaded."""
    with suppress(ImportError):  # other systems have no such limit
        from resource import RLIMIT_AS, getrlimit

        limit = getrlimit(RLIMIT_AS)[0]
        if 0 <= limit < LEAST_SPACE:
            told = f"{limit / 1e6:,.0f} MB, and {LEAST_SPACE / 1e6:,.0f} MB are needed to begin"
            raise InputError(f"there is an address space of {told}: raise it with ulimit -v")


def refuse(message: str, code: int = BAD_INPUT) -> NoReturn:
    """End with a line on standard error."""
    _say_aside(message)
    raise typer.Exit(code)


def _say_aside(message: str) -> None:
    """Print a line on standard error, unless that is gone, as a closed terminal is."""
    with suppress(OSError):
        typer.echo(f"taxarbor: {on_one_line(message)}", err=True)


def on_one_line(message: str) -> str:
    """Return a text that does nothing to a terminal but stand there."""
    return " ".join(printable(message).split())


def answer(document: Mapping[str, Any], as_json: bool, line: str | None = None) -> None:
    """Print a document, or its notes on standard error and then a line, if there is one."""
    if as_json:
        say_json(document)
        return
    say_notes(document["notes"])
    if line is not None:
        say_lines(line)


def say_lines(text: str) -> None:
    """Print lines of words; the names in them do nothing to a terminal."""
    typer.echo(_harmless(text))


def say_data(text: str) -> None:
    """Print what other programs read as it is; on a terminal, it does nothing to that."""
    is_seen = sys.stdout is not None and sys.stdout.isatty()
    # Unless it is told to keep colours, typer takes escapes out of what goes into a pipe.
    typer.echo(_harmless(text) if is_seen else text, nl=False, color=True)


def _harmless(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, a line each."""
    for note in notes:
        _say_aside(f"note: {note}")


@contextmanager
def noted(
    notes: list[str], but: type[Warning] | tuple[()] = ()
) -> Iterator[set[type[Warning]]]:
    """Take warnings of the library for notes, each once, but for one kind; yield all kinds."""
    kinds: set[type[Warning]] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield kinds
    kinds |= {one.category for one in caught}
    told = (
        on_one_line(str(one.message)) for one in caught if not issubclass(one.category, but)
    )
    notes += [note for note in dict.fromkeys(told) if note not in notes]


def say_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document; numbers that JSON does not have are null."""
    typer.echo(json.dumps(_plain(document), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
