"""Goes over an h5ad file before it is read, in a process of its own.

On some damaged files HDF5 turns in circles, deaf to Ctrl-C, or crashes, and nothing short of
reading tells which. So another process meets first what the reader will meet: links,
attributes, names and the indexes of chunks, and arrays if they are small; of others it reads
two chunks. If it ends, the reader may begin, and says what is wrong. It runs this file as a
script, with h5py and nothing of taxarbor, in a quarter of a second.
"""

import contextlib
import io
import json
import math
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

SECONDS, PER_SECOND = 30, 20_000_000
"""How long it may take: so long for any file, and a second more for so many bytes."""
STORED, READ = 1 << 24, 1 << 28
"""Arrays are read whole if so many bytes are in the file for them, and so many come of it."""
SPACE = 3 << 28
"""Bytes of memory that it may take for that, beside the libraries."""
HUNGRY = 3
"""How it ends where HDF5 wants more."""
CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")
FATAL = 0xC0000000
"""From here on, the codes with which processes end on Windows are of crashes."""
TEXTS = 1_024
"""Texts that are read at once, as each may be as long as the file."""
POINTER = 16
"""Bytes of a chunk that stand for a text of any length."""
PARTS = ("codes", "categories", "values", "mask", "data", "indices", "indptr")


def trouble_with(stream: IO[bytes], columns: Sequence[str] | None) -> str | None:
    """Return why an h5ad file must not be read, None if it may.

    ``columns`` of ``obs`` will be read beside its index; None if nothing of it will.
    Whatever else keeps the other process from its work says nothing of the file.
    """
    if not sys.executable or hasattr(sys, "frozen"):  # it would start this program again
        return None
    size = stream.seek(0, io.SEEK_END)
    seconds = SECONDS + size // PER_SECOND
    told = json.dumps([sys.path, seconds, columns], default=str)
    nowhere = subprocess.DEVNULL
    try:
        with _as_file(stream) as source:
            done = subprocess.run(
                [sys.executable, "-I", __file__, told],
                stdin=source,
                stdout=nowhere,
                stderr=nowhere,
                timeout=seconds,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return f"HDF5 comes to no end with it, in {seconds} seconds"
    except OSError:  # no process can be had here, or no Python by itself
        return None
    finally:
        stream.seek(0, io.SEEK_END)  # not by its buffer: the other process has moved on
        stream.seek(0)
    if done.returncode == HUNGRY:
        return "HDF5 runs out of memory with it"
    signals = [-getattr(signal, name) for name in CRASHES if hasattr(signal, name)]
    is_crash = done.returncode >= FATAL or done.returncode in signals
    return "HDF5 crashes on it" if is_crash else None


@contextlib.contextmanager
def _as_file(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a stream as a file of the system, from its start."""
    if isinstance(getattr(stream, "raw", stream), io.FileIO):
        yield stream
        return
    with tempfile.TemporaryFile() as copy:
        stream.seek(0)
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield copy


def _limit_memory() -> None:
    """Let this process take but so much more memory, where the system can see to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        from resource import RLIMIT_AS, getpagesize, getrlimit, setrlimit

        with open("/proc/self/statm") as counts:
            most = int(counts.read().split()[0]) * getpagesize() + SPACE
        hard = getrlimit(RLIMIT_AS)[1]
        setrlimit(RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))


@contextlib.contextmanager
def _left_to_the_reader() -> Iterator[None]:
    """Pass over what the reader will say, but for a want of memory."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or "memory allocation failed" in str(error):
            sys.exit(HUNGRY)


def _walk(file: Any, columns: Sequence[str] | None) -> None:
    import h5py

    def foreign(name: str, link: Any) -> str | None:
        return name if isinstance(link, h5py.ExternalLink) else None

    if file.visititems_links(foreign) is not None:  # it is refused, and none must be followed
        return
    _visit(file, "X")
    for frame, more in (("obs", columns), ("var", ())):
        if more is None:
            continue
        with _left_to_the_reader():
            found = file[frame]
            for column in (dict(found.attrs)["_index"], *more):
                _visit(found, column)
                if "__categories" in found:
                    _visit(found["__categories"], column)


def _visit(group: Any, name: str, *, is_part: bool = False) -> None:
    """Read what is in a group by a name, and its parts."""
    import h5py

    with _left_to_the_reader():
        found = group[name]
        with _left_to_the_reader():
            dict(found.attrs)
        if isinstance(found, h5py.Dataset):
            _read(found)
        elif not is_part:
            for part in PARTS:
                _visit(found, part, is_part=True)


def kept_unpacked(array: Any) -> Any:
    """Return an array that keeps a chunk while it is read in slices; the one given is closed.

    HDF5 keeps those of a few megabytes, and would unpack a larger one for every slice. It
    takes no more memory, as a chunk is always unpacked as a whole.
    """
    import h5py

    if array.chunks is None:
        return array
    access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
    size = max(array.dtype.itemsize, POINTER)
    access.set_chunk_cache(1, math.prod(array.chunks) * size, 1.0)
    file, name = array.file, h5py.h5i.get_name(array.id)
    array.id.close()  # else it is the same one again
    return h5py.Dataset(h5py.h5d.open(file.id, name, access))


def _read(array: Any) -> None:
    import h5py

    if array.external or array.is_virtual:
        return
    stored = array.id.get_storage_size()
    if array.chunks is not None:
        array.id.get_num_chunks()
    if h5py.check_string_dtype(array.dtype) is not None:
        array = kept_unpacked(array)
        for first in range(0, len(array), TEXTS):
            array[first : first + TEXTS]
    elif stored <= STORED and array.nbytes <= READ:
        array[()]
    elif array.chunks is not None and math.prod(array.chunks) * array.dtype.itemsize <= READ:
        _read_extremes(array)


def _read_extremes(array: Any) -> None:
    """Read the chunks of the fewest and the most bytes, where a checksum crashes if anywhere.

    What is wrong with types, and with the settings of filters, shows in any chunk.
    """
    least: Any = None
    most: Any = None

    def weigh(chunk: Any) -> None:
        nonlocal least, most
        least = chunk if least is None or chunk.size < least.size else least
        most = chunk if most is None or chunk.size > most.size else most

    array.id.chunk_iter(weigh)
    for chunk in filter(None, (least, most)):  # there may be none
        pairs = zip(chunk.chunk_offset, array.chunks, strict=True)
        array[tuple(slice(first, first + length) for first, length in pairs)]


if __name__ == "__main__":
    path, seconds, columns = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "alarm"):
        signal.alarm(seconds + 9)  # ends it even if nobody waits any more
    sys.path[:] = path
    import h5py

    _limit_memory()
    with _left_to_the_reader(), open(0, "rb") as stream, h5py.File(stream, "r") as file:
        _walk(file, columns)
