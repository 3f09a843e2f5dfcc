"""What every command does: one line and an exit code where something is wrong, JSON, notes.

0 is success, 2 is bad input, 130 is an interrupt. All else is a mistake of ours: a traceback,
and exit code 1.
"""

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from taxarbor._errors import ClusterError, InputError, printable
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
                typer.echo(f"taxarbor: {on_one_line(message)} See {command} --help", err=True)
            code = BAD_INPUT
        except typer.Abort:
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is no news to anybody
        except BrokenPipeError:  # `| head` has seen enough; typer ends quietly
            raise
        except KeyboardInterrupt:
            refuse("interrupted", INTERRUPTED)
        except InputError as error:
            refuse(error.told(self._options(ctx)))
        except ClusterError as error:
            refuse(str(error))
        except ImportError as error:
            package = (error.name or "").partition(".")[0]
            if package == "taxarbor":
                raise
            is_told = "pip install" in str(error) or not package
            refuse(str(error) if is_told else f"{error}: pip install {package}")
        except FileExistsError as error:  # it came after the outputs were checked
            refuse(f"{error.filename} is there already; --force replaces it")
        except OSError as error:
            is_plain = error.filename is None or error.strerror is None
            refuse(str(error) if is_plain else f"{error.filename}: {error.strerror}")
        return result

    def _options(self, ctx: Any) -> Callable[[str], str | None]:
        """Return what says how the command that runs calls a parameter of the library."""
        command = self.get_command(ctx, ctx.invoked_subcommand)
        params = [] if command is None else command.params
        found = {param.name: max(param.opts, key=len) for param in params}
        options = {name: text for name, text in found.items() if text.startswith("--")}
        return lambda name: (options | {"X": "the table"}).get(CALLED.get(name, name))


def refuse(message: str, code: int = BAD_INPUT) -> NoReturn:
    """End with a line on standard error."""
    typer.echo(f"taxarbor: {on_one_line(message)}", err=True)
    raise typer.Exit(code)


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
        typer.echo(line)


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, a line each."""
    for note in notes:
        typer.echo(f"taxarbor: note: {on_one_line(note)}", err=True)


@contextmanager
def noted(notes: list[str]) -> Iterator[None]:
    """Take what the library warns of for notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    told = (on_one_line(str(warning.message)) for warning in caught)
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
