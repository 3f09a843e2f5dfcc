"""What all commands share: options, errors on one line, exit codes, JSON and notes.

Exit codes: 0 is success, 2 is bad input, 130 is Ctrl-C; a bug ends with a traceback and 1.
"""

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

from taxarbor._errors import InputError, printable

BAD_INPUT, INTERRUPTED = 2, 130  # exit codes
UsageError: Any = typer.BadParameter.__mro__[1]  # its class depends on the version of typer
TABLE = re.compile(r"^X\b|(?<=\bof )X\b")
OPTION_NAMES = {  # of parameters, where they differ
    **{"random_state": "seed", "n_jobs": "jobs", "feature_names": "names"},
    **{"categorical_features": "categories", "numeric_features": "numbers"},
    **{"text_features": "text", "missing_values": "missing"},
}


# Options


def option(help: str, *names: str, **more: Any) -> Any:
    """Declare an option without a default in its help."""
    return typer.Option(*names, help=help, show_default=False, **more)


def output(help: str) -> Any:
    """Declare the option for a file to write."""
    return option(help, "--output", "-o")


def _argument(name: str, help: str) -> Any:
    return typer.Argument(help=help, metavar=name, show_default=False)


FileFormat: TypeAlias = Literal[
    "csv", "tsv", "txt", "xlsx", "ods", "json", "jsonl", "feather", "arrow", "orc", "parquet",
    "npy", "npz", "h5ad",
]  # fmt: skip
Model = Annotated[Path, _argument("MODEL", "Model written by fit.")]
Data = Annotated[Path, _argument("DATA", "Table (csv, xlsx, json, ...) or folder; - is stdin.")]
TrainingData = Annotated[
    Path, _argument("DATA", "Table the model was fitted to, in the same order; - is stdin.")
]
Clusters = Annotated[
    int | None, option("Number of clusters: undo the last splits.", "--clusters", min=1)
]
IdColumn = Annotated[str | None, option("Column with names of rows; default: detected.")]
LabelColumn = Annotated[str | None, option("Column with known classes; never a feature.")]
Format = Annotated[
    FileFormat | None, option("Format of DATA; default: by its extension.", metavar="FORMAT")
]
Sheet = Annotated[str | None, option("Sheet of a workbook; default: first of several columns.")]
Embedding = Annotated[str | None, option("Vectors: a column, entry of obsm, or .npy file.")]
Output = Annotated[Path | None, output("File to write; default: standard output.")]
Jobs = Annotated[int, option("Number of threads; -1 for all processors.")]
Seed = Annotated[int, option("Random seed; default: 0.", min=0, max=2**32 - 1)]
Force = Annotated[bool, option("Replace existing files.", "--force", metavar="")]
Json = Annotated[bool, option("Print one JSON document.", "--json", metavar="")]


# Errors


class Commands(TyperGroup):
    """Commands that end with one line on standard error if their options are wrong."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments, run the command and exit."""
        run: Any = super().main
        try:
            code = run(*arguments, **options | {"standalone_mode": False})
        except UsageError as error:
            message = error.format_message()
            if "\n" in message:  # no arguments: the message is the help
                error.show()
            elif message:
                command = "taxarbor" if error.ctx is None else error.ctx.command_path
                _print_error(f"{message} See {command} --help")
            code = BAD_INPUT
        if code == INTERRUPTED:  # as typer says for Ctrl-C
            _print_error("interrupted")
        sys.exit(code if isinstance(code, int) else 0)


class Command(TyperCommand):
    """A command whose errors of input are one line each, with the names of its options."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # a full disk or a closed pipe raises here, and not at exit
        except (BrokenPipeError, typer.Exit, UsageError):
            raise
        except Exception as error:
            message = _describe(error, ctx)
            if message is None:
                raise
            _print_error(message)
            raise typer.Exit(BAD_INPUT) from None
        return result


def _describe(error: Exception, ctx: Any) -> str | None:
    """Return one line on an error of the user's input or machine, None for a bug."""
    if isinstance(error, InputError):  # of a parameter, whose option is named
        names = {param.name: max(param.opts, key=len) for param in ctx.command.params}
        options = {name: text for name, text in names.items() if text.startswith("--")}
        text = error.message(lambda name: options.get(OPTION_NAMES.get(name, name)))
        return _name_table(text, ctx.params.get("data"))
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows or columns"
    if isinstance(error, ImportError):
        package = (error.name or "").partition(".")[0]
        has_remedy = "pip install" in str(error) or not package
        message = str(error) if has_remedy else f"{error}: pip install {package}"
        return None if package == "taxarbor" else message
    if isinstance(error, OSError):
        message = error.strerror or str(error)
        return message if error.filename is None else f"{error.filename}: {message}"
    return None


def _name_table(message: str, data: str | Path | None) -> str:
    """Return a message on X with the name of the file that it was read from."""
    name = "the table" if data is None else Path(data).name  # a text in old versions of typer
    return TABLE.sub("standard input" if name == "-" else name, message)


def _print_error(message: str) -> None:
    """Print one line on standard error, unless it is closed."""
    with suppress(OSError):
        typer.echo(f"taxarbor: {_on_one_line(message)}", err=True)


def _on_one_line(message: str) -> str:
    return " ".join(printable(message).split())


# Results


def answer(document: Mapping[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    """Print a document as JSON; or its notes on standard error, and then what ``show`` does."""
    if as_json:
        plain = json.dumps(document, default=str)  # paths are texts, and NaN is null
        typer.echo(json.dumps(json.loads(plain, parse_constant=lambda _: None)))
        return
    for note in document["notes"]:
        _print_error(f"note: {note}")
    show()


def print_lines(text: str) -> None:
    """Print lines of text; control characters in names are blanks."""
    typer.echo("\n".join(map(printable, text.split("\n"))))


def print_data(text: str) -> None:
    """Print data for other programs; without control characters only on a terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        print_lines(text.removesuffix("\n"))
    else:  # without color=True typer removes escape codes from what goes into a pipe
        typer.echo(text, nl=False, color=True)


@contextmanager
def collect_notes(data: Path, but: type[Warning] | tuple[()] = ()) -> Iterator[list[str]]:
    """Yield a list that gets the warnings of the block, each once, except for one kind."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        yield notes
    shown = (one for one in caught if not issubclass(one.category, but))
    texts = (_on_one_line(str(one.message)) for one in shown)
    notes += dict.fromkeys(_name_table(text, data) for text in texts)
