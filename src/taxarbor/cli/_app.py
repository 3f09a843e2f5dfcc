"""All commands."""

import typer

from taxarbor.cli import _bench

app = typer.Typer(
    name="taxarbor",
    help="Readable taxonomies from unlabelled rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(_bench.app, name="bench")


@app.callback()
def start() -> None:
    """Readable taxonomies from unlabelled rows."""
