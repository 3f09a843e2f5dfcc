"""Files that are written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO


def write_atomically(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]
) -> None:
    """Let ``write`` fill a file, which replaces the target once it is safely on disk.

    It is written beside the target, under another name. Whatever goes wrong, an interrupt
    included, the target stays as it was, and the other file is removed.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    draft = target.with_name(f".taxarbor-{secrets.token_hex(8)}.tmp")
    try:
        check_target(path)
        mode = target.stat().st_mode & 0o7777 if target.exists() else None
        opener = partial(os.open, mode=0o666 if mode is None else mode & 0o600)
        with open(draft, "xb", opener=opener) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(draft), str(target)):
            words = error.strerror
            if error.filename is None and error.errno is not None:
                words = os.strerror(error.errno)  # old pyarrow has other words
            raise OSError(error.errno, words, os.fspath(path)) from error
        raise


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise OSError if a file cannot be written, or is no regular file, such as /dev/null."""
    target = Path(os.path.realpath(path))
    needed = [target.parent, target] if target.exists() else [target.parent]
    effective = os.access in os.supports_effective_ids
    if target.is_dir():
        code = errno.EISDIR
    elif target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "Not a regular file", os.fspath(path))
    elif not target.parent.is_dir():
        code = errno.ENOENT
    elif not all(os.access(one, os.W_OK, effective_ids=effective) for one in needed):
        code = errno.EACCES
    else:
        return
    raise OSError(code, os.strerror(code), os.fspath(path))
