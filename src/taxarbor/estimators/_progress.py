"""Showing a growing tree: a bar on standard error, and scikit-learn's callbacks."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar, cast, final

from taxarbor._run import GrowthEvent, Observer

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def _with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin"]

Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Return a fit method that tears its callbacks down, whatever happens in it."""
    return cast("Method", _with_callbacks(method))


@contextmanager
def show_progress(estimator: Any) -> Iterator["ProgressBar | None"]:
    """Draw a bar for as long as this lasts, if the estimator is verbose."""
    if not estimator.verbose:
        yield None
        return
    bar = ProgressBar(type(estimator).__name__)
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
        self, title: str, stream: TextIO | None = None, *, patience: float = 2.0
    ) -> None:
        self._title, self._stream = title, stream or sys.stderr
        self._begun = time.monotonic()
        self._next = self._begun + patience
        self._drawn = False
        self._last = GrowthEvent(n_leaves=1, max_leaves=0, n_tried=0)
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

    def _tick(self) -> None:
        while not self._closed.wait(max(self.EVERY, self._next - time.monotonic())):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now >= self._next and not self._closed.is_set():
                self._next = now + self.EVERY
                self._drawn = True
                self._stream.write("\r" + self._line(self._last, now - self._begun))
                self._stream.flush()

    def close(self) -> None:
        """End the line, if one was drawn."""
        self._closed.set()
        if self._ticker.ident is not None:
            self._ticker.join()
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()

    def _line(self, event: GrowthEvent, seconds: float) -> str:
        if not event.max_leaves:
            return f"{self._title}: {event.n_leaves} leaves, {seconds:.0f} s"
        bar = "#" * round(self.WIDTH * event.n_leaves / event.max_leaves)
        told = f"{event.n_leaves} of {event.max_leaves} leaves, {seconds:.0f} s"
        return f"{self._title}: [{bar:<{self.WIDTH}}] {told}"


def call_back(estimator: Any, max_leaves: int | None) -> tuple[Observer | None, Any]:
    """Return an observer that runs an estimator's scikit-learn callbacks, and their context.

    Each leaf is a task of its own; a callback that answers True stops the growth.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return None, None
    context = estimator._init_callback_context(max_subtasks=max_leaves)
    context.call_on_fit_task_begin(estimator=estimator)
    seen = 1

    def observe(event: GrowthEvent, /) -> bool:
        nonlocal seen
        stop = False
        while seen < event.n_leaves:
            seen += 1
            task = context.subcontext(task_name="leaf")
            task.call_on_fit_task_begin(estimator=estimator)
            stop |= bool(task.call_on_fit_task_end(estimator=estimator))
        return stop

    return observe, context


def observe_all(*observers: Observer | None) -> Observer:
    """Return an observer that passes each event on to all of these."""
    present = [observer for observer in observers if observer is not None]

    def observe(event: GrowthEvent, /) -> bool:
        answers = [observer(event) for observer in present]
        return any(answers)

    return observe
