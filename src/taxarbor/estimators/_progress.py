"""Scikit-learn's callbacks, and several observers as one."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

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
