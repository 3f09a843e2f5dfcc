"""All commands, each with an example that the tests run."""

import platform
from collections.abc import Callable
from typing import Annotated

import typer

from taxarbor import __version__
from taxarbor.cli import _fit_command, _model_commands
from taxarbor.cli._shell import Commands

EXAMPLES: dict[Callable[..., None], str] = {
    _fit_command.fit: "customers.csv -k 6 -o model.taxarbor --label-column class",
    _model_commands.show: "model.taxarbor --depth 2",
    _model_commands.predict: "model.taxarbor customers.csv --id-column id -o labels.csv",
    _model_commands.explain: "model.taxarbor customers.csv --node c0",
    _model_commands.report: "model.taxarbor customers.csv -o report.html --id-column id",
    _model_commands.export: "model.taxarbor -o tree.nwk",
    _model_commands.assess: "model.taxarbor customers.csv --refits 10",
    _fit_command.demo: "-o animals.html",
}

app = typer.Typer(
    name="taxarbor", no_args_is_help=True, pretty_exceptions_enable=False, cls=Commands
)
for command, example in EXAMPLES.items():
    name = command.__name__
    app.command(name, epilog=f"Example: taxarbor {name} {example}")(command)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"taxarbor {__version__}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback(epilog="Example: taxarbor demo")
def start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Hierarchical clustering with rules that people can read.

    Start with fit; the other commands read the model that it writes.
    """
