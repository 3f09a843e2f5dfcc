"""Files that are written whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from taxarbor._errors import FULL

NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK}
"""What systems say that know no second name of a file, such as those on memory cards."""
DRAFT = ".taxarbor-"
"""How the names of files begin that are not yet whole."""


def write_whole(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], object], *, replace: bool = True
) -> None:
    """Let ``write`` fill a file, which takes its place only once it is safely on disk.

    It is written beside the target, under another name. Whatever goes wrong, the target
    stays as it was, and the other file is removed. Unless ``replace``, FileExistsError is
    raised for a file that is there, even one that came during the writing.
    """
    target = Path(os.path.realpath(path))  # through a link, not over it
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(8)}.tmp")
    with told_as(path):
        try:
            _refuse_target(target, replace)
            with draft.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            move_whole(draft, target, replace=replace)
        finally:
            with suppress(OSError):
                draft.unlink()


def move_whole(draft: Path, path: str | os.PathLike[str], *, replace: bool) -> None:
    """Let a file of the same folder take its place, with the owner and mode of the old one."""
    target = Path(os.path.realpath(path))
    _refuse_target(target, replace)
    if not replace:
        _move_to_free_place(draft, target)
        return
    with suppress(FileNotFoundError):
        _keep_owner(target.stat(), draft)
    os.replace(draft, target)


@contextmanager
def told_as(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors name the file as the user does, who knows no other name."""
    try:
        yield
    except OSError as error:
        named, told = error.filename, error.strerror
        if named is None and error.errno in FULL:
            told = f"{told}: nothing was written"
        elif named != os.path.realpath(path) and f"{os.sep}{DRAFT}" not in str(named):
            raise
        raise OSError(error.errno, told, os.fspath(path)) from error


def _refuse_target(target: Path, replace: bool) -> None:
    """Refuse to replace folders, pipes, devices, and files that must not be written."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        told = "is no regular file, and would be replaced by one"
        raise OSError(errno.EINVAL, told, str(target))
    if replace and not may_write(target):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def may_write(target: Path) -> bool:
    """Say whether a file may be changed; its folder would let anybody replace it."""
    return os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _keep_owner(old: os.stat_result, draft: Path) -> None:
    """Give a file the mode of an old one and, as far as the system lets us, its owner."""
    if hasattr(os, "chown"):
        for owner in (old.st_uid, -1):
            with suppress(OSError):
                os.chown(draft, owner, old.st_gid)
                break
    draft.chmod(stat.S_IMODE(old.st_mode))


def _move_to_free_place(draft: Path, target: Path) -> None:
    """Give a file the name of the target, unless something has it: one step, no gap."""
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        target.open("xb").close()  # an empty file of our own, to be replaced
        os.replace(draft, target)
