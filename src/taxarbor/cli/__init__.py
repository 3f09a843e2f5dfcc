"""The command line: each command parses, calls one function and shows what came of it.

Commands load what they need when they run, so that help and completion answer at once.
"""

import os
import sys

BAD_INPUT = 2
INTERRUPTED = b"taxarbor: interrupted\n"

try:
    import io
    import signal
    import threading
    from collections.abc import Iterator
    from contextlib import contextmanager, suppress
    from typing import Any
except KeyboardInterrupt:  # a moment later, main takes care of it
    os.write(2, INTERRUPTED)
    os._exit(130)

__all__ = ["main"]

ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What ends a process: somebody, or the end of its terminal."""
_heard: list[int] = []


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
    with suppress(OSError):  # the terminal may be gone
        os.write(2, INTERRUPTED)
    os._exit(128 + number)


def _stop(number: int, frame: Any) -> None:
    _heard.append(number)
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be an exception where there is something to save or to clean up.

    So are the signals that end a process. Elsewhere the system ends it at once.
    """
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDS)}
    ours = {one: does for one, does in usual.items() if does in (_leave, signal.SIG_DFL)}
    if threading.current_thread() is not threading.main_thread():
        ours = {}
    for number in ours:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, does in ours.items():
            signal.signal(number, does)


def was_interrupted() -> bool:
    """Say whether a signal became an exception."""
    return bool(_heard)


def interrupted_code() -> int:
    """Return the exit code of what was interrupted: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (_heard[-1] if _heard else signal.SIGINT)
