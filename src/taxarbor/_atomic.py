"""Files that are written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
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
        with draft.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        _copy_mode(target, draft)
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(draft), str(target)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise OSError if a file cannot be written, or is no regular file, such as /dev/null."""
    target = Path(os.path.realpath(path))
    code, message = 0, None
    if target.is_dir():
        code = errno.EISDIR
    elif target.exists() and not target.is_file():
        code, message = errno.EINVAL, "Not a regular file"
    elif target.exists() and not _may_write(target):
        code = errno.EACCES
    elif not target.parent.is_dir():
        code = errno.ENOENT
    elif not _may_write(target.parent):
        code = errno.EACCES
    if code:
        raise OSError(code, message or os.strerror(code), os.fspath(path))


def _may_write(target: Path) -> bool:
    return os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _copy_mode(old: Path, new: Path) -> None:
    """Give a file the mode and, as far as the system lets us, the owner of an old one."""
    if old.exists():
        state = old.stat()
        with suppress(OSError, AttributeError):  # Windows has no chown
            os.chown(new, state.st_uid, state.st_gid)
        new.chmod(state.st_mode & 0o7777)
