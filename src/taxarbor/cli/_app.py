"""All commands, each with an example that the tests run."""

from collections.abc import Callable
from typing import Annotated

import typer

from taxarbor import __version__
from taxarbor.cli import (
    _cut,
    _demo,
    _explain,
    _export,
    _fit,
    _info,
    _predict,
    _report,
    _score,
    _show,
)
from taxarbor.cli._guard import Commands

EXAMPLES: dict[Callable[..., None], str] = {
    _fit.fit: "customers.csv -k 6 -o model.taxarbor --id-column id --label-column class",
    _predict.predict: "model.taxarbor customers.csv --id-column id -o labels.csv",
    _show.show: "model.taxarbor --depth 2",
    _explain.explain: "model.taxarbor customers.csv --node c0",
    _cut.cut: "model.taxarbor -k 3 -o coarse.taxarbor",
    _export.export: "model.taxarbor -o tree.nwk",
    _score.score: "model.taxarbor customers.csv --label-column class",
    _report.report: "model.taxarbor customers.csv -o report.html --id-column id",
    _demo.demo: "--data digits -o digits.html",
    _info.info: "model.taxarbor",
}

app = typer.Typer(
    name="taxarbor",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=Commands,
)
for command, example in EXAMPLES.items():
    name = command.__name__
    app.command(name, epilog=f"Example: taxarbor {name} {example}")(command)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"taxarbor {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: taxarbor demo")
def start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say the version.", callback=_say_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Readable taxonomies from unlabelled rows.

    Begin with fit; the other commands read the model that it writes.
    """
