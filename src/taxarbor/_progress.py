"""A progress bar on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from taxarbor._run import GrowthEvent, Observer, ignore

BAR_WIDTH = 30
PATIENCE = 2.0
"""Seconds before anything is drawn: short fits draw nothing."""
PAUSE = 0.1
"""Seconds between two drawings."""


@contextmanager
def show_progress(title: str, verbose: int, unit: str = "leaves") -> Iterator[Observer]:
    """Yield an observer that draws a bar on a line of its own, if ``verbose`` is not 0."""
    if not verbose:
        yield ignore
        return
    stream, begun = sys.stderr, time.monotonic()
    drawn_at, width = begun + PATIENCE - PAUSE, 0

    def write(text: str) -> None:
        with suppress(OSError):  # the terminal may be closed; the fit goes on
            stream.write(text)
            stream.flush()

    def draw(event: GrowthEvent) -> None:
        nonlocal drawn_at, width
        now = time.monotonic()
        if now < drawn_at + PAUSE:
            return
        line = f"{title}: {event.n_leaves} {unit}, {now - begun:.0f} s"
        if event.max_leaves:
            bar = "#" * round(BAR_WIDTH * event.n_leaves / event.max_leaves)
            count = f"{event.n_leaves} of {event.max_leaves} {unit}"
            line = f"{title}: [{bar:<{BAR_WIDTH}}] {count}, {now - begun:.0f} s"
        write("\r" + line.ljust(width))
        drawn_at, width = now, len(line)

    try:
        yield draw
    finally:
        if width:
            write("\n")
