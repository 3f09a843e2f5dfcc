"""The command line: each command parses, calls one function and shows what came of it."""

import io
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from taxarbor.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich", "click"}:
            raise
        sys.exit("taxarbor's command line needs typer and rich: pip install 'taxarbor[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names may have letters that it lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
