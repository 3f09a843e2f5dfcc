"""Files that are written whole or not at all."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK}
"""What systems say that know no second name of a file, such as those on memory cards."""


def write_whole(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], object], *, replace: bool = True
) -> None:
    """Let ``write`` fill a file, which takes its place only once it is safely on disk.

    It is written beside the target, under another name. Whatever goes wrong, the target
    stays as it was, and the other file is removed.

    Parameters
    ----------
    path : str or path
        Where to write.
    write : callable
        Gets the file, open for bytes.
    replace : bool
        Whether a file that is there may go, even one that came during the writing.

    Raises
    ------
    FileExistsError
        If there is a file, and it is not to be replaced.
    OSError
        If the target is no regular file, or cannot be written.
    """
    target = Path(os.path.realpath(path))  # through a link, not over it
    draft = target.with_name(f".taxarbor-{secrets.token_hex(8)}.tmp")
    try:
        _refuse_special(target)
        with draft.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            if target.exists():
                shutil.copymode(target, draft)
            os.replace(draft, target)
        else:
            _move_to_free_place(draft, target)
    except OSError as error:
        if error.filename not in {str(draft), str(target)}:
            raise
        # The user knows the name they gave, and no other.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _refuse_special(target: Path) -> None:
    """Refuse folders, pipes and devices: only a file may be replaced by a file."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        told = "is no regular file, and would be replaced by one"
        raise OSError(errno.EINVAL, told, str(target))


def _move_to_free_place(draft: Path, target: Path) -> None:
    """Give a file the name of the target, unless something has it: one step, no gap."""
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        target.open("xb").close()  # an empty file of our own, to be replaced
        os.replace(draft, target)
