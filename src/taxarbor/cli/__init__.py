"""The command line: each command parses its options, calls one function and shows the result.

Commands load what they need when they run, so that help and completion answer at once.
"""

import io
import sys

__all__ = ["main"]

BAD_INPUT = 2
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("taxarbor: interrupted\n")
        sys.exit(INTERRUPTED)


def _run() -> None:
    try:
        from taxarbor.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich", "click"}:
            raise
        sys.stderr.write(
            "taxarbor: the command line needs typer and rich: pip install typer rich\n"
        )
        sys.exit(BAD_INPUT)
    if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may lack letters of names
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
