"""What every command does when something is wrong: one line, and an exit code.

0 is success, 2 is bad input, 130 is an interrupt. What nobody foresaw is a traceback.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from taxarbor._errors import TaxarborError
from taxarbor.cli._words import in_options
from taxarbor.hierarchy import printable

UsageError: Any = typer.BadParameter.__mro__[1]
"""What typer raises for options it does not know; of which class depends on its version."""

BAD_INPUT = 2
INTERRUPTED = 130


class Commands(TyperGroup):
    """Commands that end with one line on standard error where input is bad."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Parse what was typed and run it, then exit."""
        run: Any = super().main
        if not standalone_mode:
            return run(*arguments, standalone_mode=False, **options)
        try:
            code = run(*arguments, standalone_mode=False, **options)
        except UsageError as error:
            message = error.format_message()
            if "\n" in message:  # nothing was typed, and this is the help
                error.show()
            elif message:  # else the help is there already
                command = "taxarbor" if error.ctx is None else error.ctx.command_path
                typer.echo(f"taxarbor: {printable(message)} See {command} --help", err=True)
            code = BAD_INPUT
        except typer.Abort:
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with one_line(ctx):
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is no news to anybody
        return result


@contextmanager
def one_line(ctx: Any) -> Iterator[None]:
    """Turn what a user can mend into one line and an exit code."""
    try:
        yield
    except BrokenPipeError:  # `| head` has seen enough; typer ends quietly
        raise
    except KeyboardInterrupt:
        refuse("interrupted", INTERRUPTED)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "taxarbor":
            raise
        hint = "" if "pip install" in str(error) else "; pip install 'taxarbor[all]'"
        refuse(f"{error}{hint}")
    except FileExistsError as error:  # it came after the outputs were checked
        refuse(f"{error.filename} is there already; --force replaces it")
    except OSError as error:
        refuse(_told(error))
    except (TaxarborError, ValueError) as error:
        refuse(in_options(str(error), ctx.invoked_subcommand))


def refuse(message: str, code: int = BAD_INPUT) -> NoReturn:
    """End with a line on standard error."""
    typer.echo(f"taxarbor: {on_one_line(message)}", err=True)
    raise typer.Exit(code)


def on_one_line(message: str) -> str:
    """Return a text that does nothing to a terminal but stand there."""
    return " ".join(printable(message).split())


@contextmanager
def collected(notes: list[str]) -> Iterator[Callable[[type[Warning]], bool]]:
    """Add the warnings of what is done here to the notes, each once.

    Yields a function that says whether there was one of a kind.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)

        def there_was(kind: type[Warning]) -> bool:
            return any(issubclass(warning.category, kind) for warning in caught)

        yield there_was
    notes += dict.fromkeys(
        in_options(" ".join(str(warning.message).split()), "fit") for warning in caught
    )


def _told(error: OSError) -> str:
    """Return ``model.taxarbor: No such file or directory``."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"
