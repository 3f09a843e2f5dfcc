"""Files that are written whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Let ``write`` fill a file, which takes its place only once it is safely on disk.

    It is written beside the target, under another name. Whatever goes wrong, the target
    stays as it was, and the other file is removed.
    """
    target = Path(os.path.realpath(path))  # through a link, not over it
    draft = target.with_name(f".taxarbor-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
