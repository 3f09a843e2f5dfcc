"""A progress bar on standard error."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, final

from taxarbor._run import GrowthEvent


@contextmanager
def show_progress(
    title: str, verbose: int, unit: str = "leaves"
) -> Iterator["ProgressBar | None"]:
    """Show a bar within the block if ``verbose`` is not 0."""
    if not verbose:
        yield None
        return
    bar = ProgressBar(title, unit=unit)
    try:
        bar.start()
        yield bar
    finally:
        bar.close()


@final
class ProgressBar:
    """Draws a line on a stream once a fit has run for some time; short fits draw nothing."""

    WIDTH = 30
    EVERY = 0.1

    def __init__(
        self,
        title: str,
        stream: TextIO | None = None,
        *,
        patience: float = 2.0,
        unit: str = "leaves",
    ) -> None:
        self._title, self._stream, self._unit = title, stream or sys.stderr, unit
        self._begun = time.monotonic()
        self._next = self._begun + patience
        self._drawn = False
        self._last = GrowthEvent(n_leaves=1, max_leaves=0, n_tried=0)
        self._width = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        # A large node may take long: the seconds are counted on meanwhile.
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        """Start to count seconds."""
        self._ticker.start()

    def __call__(self, event: GrowthEvent, /) -> None:
        """Draw the state of the tree, at most ten times a second."""
        self._last = event
        self._draw()

    def _tick(self) -> None:
        while not self._closed.wait(max(self.EVERY, self._next - time.monotonic())):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now >= self._next and not self._closed.is_set():
                self._next = now + self.EVERY
                self._drawn = True
                line = self._line(self._last, now - self._begun)
                self._write("\r" + line.ljust(self._width))
                self._width = len(line)

    def close(self) -> None:
        """End the line, if one was drawn."""
        self._closed.set()
        if self._ticker.ident is not None:
            self._ticker.join()
        if self._drawn:
            self._write("\n")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal may be closed; the fit goes on
            self._stream.write(text)
            self._stream.flush()

    def _line(self, event: GrowthEvent, seconds: float) -> str:
        if not event.max_leaves:
            return f"{self._title}: {event.n_leaves} {self._unit}, {seconds:.0f} s"
        bar = "#" * round(self.WIDTH * event.n_leaves / event.max_leaves)
        count = f"{event.n_leaves} of {event.max_leaves} {self._unit}"
        return f"{self._title}: [{bar:<{self.WIDTH}}] {count}, {seconds:.0f} s"
