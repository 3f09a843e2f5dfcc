"""What every command does: one line and an exit code where something is wrong, JSON, notes.

0 is success, 2 is bad input, 130 is Ctrl-C. Everything else is a bug: a traceback, and exit
code 1.
"""

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from taxarbor._errors import InputError, printable
from taxarbor.cli import BAD_INPUT, INTERRUPTED

UsageError: Any = typer.BadParameter.__mro__[1]
"""What typer raises for options it does not know; of which class depends on its version."""
CALLED = {
    **{"random_state": "seed", "n_jobs": "jobs", "sample_weight": "weights"},
    **{"categorical_features": "categories", "date_features": "dates"},
}
"""Parameters whose options have other names."""


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
                _print_error(f"{message} See {command} --help")
            code = BAD_INPUT
        except typer.Abort:
            code = INTERRUPTED
        if code == INTERRUPTED:  # also Ctrl-C while arguments are parsed, which typer catches
            _print_error("interrupted")
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the requested command."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:  # as it is where somebody closed it
                sys.stdout.flush()  # here, where a closed pipe is no news to anybody
        except (BrokenPipeError, typer.Exit, typer.Abort, UsageError):
            raise  # `| head` has seen enough: typer ends quietly, as it does for the others
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            message = _describe(error, self._options(ctx))
            if message is None:
                raise
            refuse(message)
        return result

    def _options(self, ctx: Any) -> Callable[[str], str | None]:
        """Return a function from parameters of the library to options of the command."""
        command = self.get_command(ctx, ctx.invoked_subcommand)
        params = [] if command is None else command.params
        names = {param.name: max(param.opts, key=len) for param in params}
        options = {name: text for name, text in names.items() if text.startswith("--")}
        return lambda name: (options | {"X": "the table"}).get(CALLED.get(name, name))


def _describe(error: Exception, options: Callable[[str], str | None]) -> str | None:
    """Return one line on an error of the user's input or machine, None for a bug."""
    if isinstance(error, MemoryError):
        return "there is not enough memory: take fewer rows or columns"
    if isinstance(error, InputError):
        return error.message(options)
    if isinstance(error, ImportError):
        package = (error.name or "").partition(".")[0]
        has_command = "pip install" in str(error) or not package
        message = str(error) if has_command else f"{error}: pip install {package}"
        return None if package == "taxarbor" else message
    if isinstance(error, FileExistsError):  # it was created after the outputs were checked
        return f"{error.filename} is there already; --force replaces it"
    if isinstance(error, OSError):
        message = error.strerror or str(error)
        return message if error.filename is None else f"{error.filename}: {message}"
    return None


def refuse(message: str) -> NoReturn:
    """End with a line on standard error."""
    _print_error(message)
    raise typer.Exit(BAD_INPUT)


def _print_error(message: str) -> None:
    """Print a line on standard error, unless it is a closed terminal."""
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
    typer.echo(_escape(text))


def say_data(text: str) -> None:
    """Print what other programs read as it is; on a terminal, it does nothing to that."""
    is_seen = sys.stdout is not None and sys.stdout.isatty()
    # Without color=True typer removes escapes from what goes into a pipe.
    typer.echo(_escape(text) if is_seen else text, nl=False, color=True)


def _escape(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, a line each."""
    for note in notes:
        _print_error(f"note: {note}")


@contextmanager
def noted(notes: list[str], but: type[Warning] | tuple[()] = ()) -> Iterator[None]:
    """Collect warnings of the library as notes, each once, except for one kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    messages = (
        on_one_line(str(one.message)) for one in caught if not issubclass(one.category, but)
    )
    notes += [note for note in dict.fromkeys(messages) if note not in notes]


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
