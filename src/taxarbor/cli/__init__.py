"""The command line: each command parses its options, calls one function and shows the result.

Commands import what they need when they run, so that help and completion are fast.
"""

import io
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    for name in ("SIGTERM", "SIGHUP"):  # as Ctrl-C does, they let drafts of files be removed
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        from taxarbor.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich", "click"}:
            raise
        remedy = "pip install typer rich"
        sys.stderr.write(f"taxarbor: the command line needs typer and rich: {remedy}\n")
        sys.exit(2)
    if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may lack letters of names
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
