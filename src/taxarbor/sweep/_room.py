"""How much memory a fit may take: what was asked for, or what the machine has to give."""

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any

from taxarbor._errors import InputError, InputTypeError
from taxarbor.sweep._blocks import CELLS

UNITS = {
    **{"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12},
    **{"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    **{"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40},
}
SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
LEAST = 10**6
"""Bytes below which a limit is a mistake: 2 for 2GB."""
IN_FLIGHT = 3 * 8 * CELLS
"""Bytes that a thread needs for its block: read, encoded, and on its way."""
UNKNOWN = 2**31
"""Bytes that are taken for available where nothing says what is."""
UNLIMITED = 2**60
"""Bytes that no machine has: how some systems write that there is no limit."""
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def room(limit: int | str | None, n_threads: int = 1) -> int:
    """Return how many bytes of rows a fit may keep in memory.

    Parameters
    ----------
    limit : int, str or None
        Bytes that the process may take, or a text such as ``"2GB"`` or ``"500 MiB"``. What it
        has already, and what blocks in flight need, is not to be had any more. None leaves
        half of what the machine has available to others.
    n_threads : int
        Threads that each have a block in flight.

    Returns
    -------
    int
        Bytes; 0 where the process is at its limit already, and all rows go to disk.

    Raises
    ------
    InputError
        If the limit is none.

    Examples
    --------
    >>> room("1 MB")
    0
    """
    left = available() // 2 if limit is None else size_of(limit) - _used()
    return max(left - n_threads * IN_FLIGHT, 0)


def size_of(limit: Any) -> int:
    """Return the bytes that a memory limit stands for, or raise InputError."""
    name = "memory_limit"
    wanted = 'a number of bytes or a text such as "2GB" or "500 MiB"'
    if isinstance(limit, str):
        found = SIZE.fullmatch(limit)
        if found is None or found[2].upper() not in UNITS:
            raise InputError(f"must be {wanted}; got {limit!r}", name)
        size = float(found[1]) * UNITS[found[2].upper()]
    elif isinstance(limit, Real) and not isinstance(limit, bool):
        size = float(limit)
    else:
        raise InputTypeError(f"must be {wanted}; got {limit!r}", name)
    if not LEAST <= size < math.inf:
        raise InputError(f"must be {wanted}, at least 1 MB; got {limit!r}", name)
    return int(size)


def available(unknown: int = UNKNOWN) -> int:
    """Return the bytes that this process can still get, of the machine and of its limits.

    ``unknown`` are taken for those of a machine that does not say; what is refused beyond
    ``UNLIMITED`` is refused only where something is known.
    """
    return max(min([_of_machine(unknown), *_of_groups(), *_of_process()]), 0)


def _of_machine(unknown: int) -> int:
    with suppress(OSError, ValueError, LookupError):
        lines = (PROC / "meminfo").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        return int(sizes["MemAvailable"].split()[0]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # names that a system does not know
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return unknown


def _of_groups() -> Iterator[int]:
    """Yield what control groups leave to this process, its own and those around it."""
    with suppress(OSError, ValueError):
        for line in (PROC / "self" / "cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            root = CGROUPS / "memory" if kinds else CGROUPS
            names = (
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
                if kinds
                else ("memory.max", "memory.current", "inactive_file")
            )
            place = root / path.lstrip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(root):
                    yield from _left(folder, *names)


def _left(folder: Path, most: str, used: str, cache: str) -> Iterator[int]:
    """Yield what one group leaves; files that are only cached can go."""
    with suppress(OSError, ValueError):  # there is none, or it says max
        limit = int((folder / most).read_text())
        if limit >= UNLIMITED:
            return
        taken = int((folder / used).read_text())
        with suppress(OSError, ValueError, LookupError):
            lines = (folder / "memory.stat").read_text().splitlines()
            taken -= int(dict(line.split() for line in lines)[cache])
        yield limit - taken


def _of_process() -> Iterator[int]:
    """Yield what a limit on addresses leaves, where there is one."""
    try:
        import resource
    except ImportError:
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        yield limit - _pages(0)


def _used() -> int:
    """Return the bytes of memory that this process has."""
    found = _pages(1)
    if found:
        return found
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return 0


def _pages(field: int) -> int:
    """Return a size of this process, in bytes: 0 for addresses, 1 for memory."""
    with suppress(AttributeError, OSError, ValueError, LookupError):
        pages = int((PROC / "self" / "statm").read_text().split()[field])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0
