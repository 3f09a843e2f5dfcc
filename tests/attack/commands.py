"""The command line in processes of its own: quick ones by fork, true ones on a terminal."""

import os
import pty
import resource
import select
import signal
import sys
import time
import traceback
from contextlib import suppress

ENDS = 10.0
"""Seconds within which a command must have ended, once it is told to."""
MODULES = ("_explain", "_fit", "_fitting", "_labels", "_model", "_rows", "_streaming", "_demo")


def load():
    """Import what commands need, so that a fork has it at once."""
    from importlib import import_module

    for name in ("taxarbor.cli._app", "taxarbor.report", "pandas", "pyarrow.parquet"):
        import_module(name)
    for name in MODULES:
        import_module(f"taxarbor.cli.{name}")


def run(arguments, folder, *, file_size=None, stdout=None, seconds=60.0):
    """Run a command in a fork, on a terminal; return its exit code and what it said."""

    def child():
        os.chdir(folder)
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        if stdout is not None:
            os.dup2(os.open(stdout, os.O_WRONLY), 1)
        sys.stdin, sys.stdout, sys.stderr = (  # as new: the old ones may have been files
            open(number, "rw"[number > 0], encoding="utf-8", closefd=False)  # noqa: SIM115
            for number in range(3)
        )
        from taxarbor.cli import main

        sys.argv = ["taxarbor", *map(str, arguments)]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()

    os.environ |= {"TERM": "xterm-256color", "COLUMNS": "100"}
    process, terminal = pty.fork()
    if not process:
        code = 1
        try:
            child()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)
    return _followed(process, terminal, time.monotonic() + seconds)


def start(arguments, folder):
    """Start a command afresh on a terminal; return its process and the terminal."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    env = os.environ | {"TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"}
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        command = [sys.executable, "-m", "taxarbor", *map(str, arguments)]
        os.execvpe(command[0], command, env)
    return process, terminal


def finish(process, terminal, seconds=ENDS):
    """Wait for the end of a command; return its exit code and what it said."""
    return _followed(process, terminal, time.monotonic() + seconds)


def _followed(process, terminal, end):
    """Return the code as a shell gives it, None of a command that had to be killed."""
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
