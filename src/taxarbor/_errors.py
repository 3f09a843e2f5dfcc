"""What taxarbor raises and warns of."""

import sys
import warnings


class TaxarborError(Exception):
    """Base of the errors that only taxarbor raises."""


class FileFormatError(TaxarborError, ValueError):
    """A file is damaged, of another kind, or of a version that this one cannot read."""


class GrowthWarning(UserWarning):
    """The tree has fewer leaves than asked for; the message says why."""


class InterruptedFitWarning(UserWarning):
    """The fit was interrupted; the tree grown so far is kept."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called into taxarbor."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    """Say whether a frame is taxarbor's, or of what scikit-learn wraps its methods in."""
    return module.startswith(("taxarbor.", "sklearn.callback.", "sklearn.base"))
