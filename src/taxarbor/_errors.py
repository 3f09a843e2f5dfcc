"""What taxarbor raises and warns of."""


class TaxarborError(Exception):
    """Base of the errors that only taxarbor raises."""


class FileFormatError(TaxarborError, ValueError):
    """A file is damaged, of another kind, or of a version that this one cannot read."""


class GrowthWarning(UserWarning):
    """The tree has fewer leaves than asked for; the message says why."""


class InterruptedFitWarning(UserWarning):
    """The fit was interrupted; the tree grown so far is kept."""
