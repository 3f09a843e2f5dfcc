"""The command line in processes of its own: quick ones by fork, true ones on a terminal."""

import os
import pty
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from importlib import import_module

ENDS = 10.0
"""Seconds within which a command must have ended, once it is told to."""
MODULES = ("_fit", "_fitting", "_model", "_reading", "_render", "_rows", "_demo")


def load():
    """Import what commands need, so that a fork has it at once."""
    for name in ("taxarbor.cli._app", "taxarbor.report", "pandas", "pyarrow.parquet"):
        import_module(name)
    for name in MODULES:
        import_module(f"taxarbor.cli.{name}")


def run(arguments, folder, *, seconds=60.0, **limits):
    """Run a command in a fork, on a terminal; return its exit code and what it said."""
    return finish(*fork(arguments, folder, **limits), seconds)


def fork(arguments, folder, *, file_size=None, stdout=None):
    """Start a command in a fork, where all is loaded; return its process and terminal."""
    process, terminal = _on_terminal(folder)
    if process:
        return process, terminal
    code = 1
    try:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        if stdout is not None:
            os.dup2(os.open(stdout, os.O_WRONLY), 1)
        sys.stdin, sys.stdout, sys.stderr = (  # as new: the old ones may have been files
            open(number, "rw"[number > 0], encoding="utf-8", closefd=False)  # noqa: SIM115
            for number in range(3)
        )
        sys.argv = ["taxarbor", *map(str, arguments)]
        main = import_module("taxarbor.cli").main
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def start(arguments, folder):
    """Start a command afresh on a terminal; return its process and terminal."""
    process, terminal = _on_terminal(folder)
    if not process:
        command = [sys.executable, "-m", "taxarbor", *map(str, arguments)]
        os.execv(command[0], command)
    return process, terminal


def _on_terminal(folder):
    """Fork with a terminal; the child is in the folder, and signals do to it what they do."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # or a child might run on as its parent
    process, terminal = pty.fork()
    if not process:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
        os.chdir(folder)
        tempfile.tempdir = None
        os.environ |= {"TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"}
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "100"}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    return process, terminal


def finish(process, terminal, seconds=ENDS):
    """Wait for the end of a command; return its exit code and what it said.

    The code is as a shell gives it, None of a command that had to be killed.
    """
    end = time.monotonic() + seconds
    said = bytearray()
    while (rest := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], min(rest, 0.5))[0]:
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:  # which Linux says where it has ended
                part = b""
            if not part:
                break
            said += part
    found, status = 0, 0
    while not found and time.monotonic() < end + 1.0:
        found, status = os.waitpid(process, os.WNOHANG)
        time.sleep(0 if found else 0.005)
    if not found:
        os.killpg(process, signal.SIGKILL)  # pty.fork makes it a session of its own
        os.waitpid(process, 0)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(status)
    text = said.decode("utf-8", "replace").replace("\r\n", "\n")
    return (None if not found else 128 - code if code < 0 else code), text


def litter(folder):
    """Return names of files that should not have stayed."""
    found = [path.name for path in folder.iterdir() if path.name.startswith(".taxarbor-")]
    temporary = folder / "tmp"
    return found + ([path.name for path in temporary.iterdir()] if temporary.is_dir() else [])
