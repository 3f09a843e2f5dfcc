"""A bar on standard error for what takes long."""

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
    """Draw a bar for as long as this lasts, if that is wanted."""
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
    """Draws a line on a stream, once a fit has run for a while: short ones stay silent."""

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
        self._sweep, self._width = "", 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        # One large node may take long: the clock goes on while nothing else is to be told.
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        """Let the clock run."""
        self._ticker.start()

    def __call__(self, event: GrowthEvent, /) -> bool:
        """Draw the state of the tree, ten times a second at most."""
        self._last = event
        self._draw()
        return False

    def watch(self, n_sweeps: int, share: float, /) -> None:
        """Draw how far the sweeps over the rows are."""
        self._sweep = f"sweep {n_sweeps}, {share:.0%} of rows, "
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
        with suppress(OSError):  # the terminal may be gone, and the fit goes on
            self._stream.write(text)
            self._stream.flush()

    def _line(self, event: GrowthEvent, seconds: float) -> str:
        if not event.max_leaves:
            told = f"{event.n_leaves} {self._unit}, {self._sweep}{seconds:.0f} s"
            return f"{self._title}: {told}"
        bar = "#" * round(self.WIDTH * event.n_leaves / event.max_leaves)
        told = f"{event.n_leaves} of {event.max_leaves} {self._unit}, {self._sweep}"
        return f"{self._title}: [{bar:<{self.WIDTH}}] {told}{seconds:.0f} s"
