"""The command line: each command parses, calls one function and shows what came of it.

Commands load what they need when they run, so that help and completion answer at once.
"""

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["main"]

BAD_INPUT = 2
INTERRUPTED = 130


def main() -> None:
    """Run the command line, or say what it needs."""
    _leave_when_interrupted()
    try:
        from taxarbor.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich", "click"}:
            raise
        sys.stderr.write(
            "taxarbor: the command line needs typer and rich: pip install typer rich\n"
        )
        sys.exit(BAD_INPUT)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names may have letters that it lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    app()


def _leave_when_interrupted() -> None:
    """End at once on Ctrl-C, with one line.

    As an exception, it would end in a traceback wherever it meets a library that is just
    being loaded. Where somebody had interrupts ignored, they stay so.
    """
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: Any) -> None:
    os.write(2, b"taxarbor: interrupted\n")
    os._exit(INTERRUPTED)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be an exception where there is something to save or to clean up."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _leave)
