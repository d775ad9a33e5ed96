"""The one exception tree: catch `DeepLFMError` for everything this package raises on purpose.

Every message says what was expected, what came, and what to do.
"""


class DeepLFMError(Exception):
    """This is the base class of every error that deeplfm raises on purpose."""


class InputError(DeepLFMError, ValueError):
    """It is raised when an argument cannot be used; nothing was changed."""


class InputTypeError(InputError, TypeError):
    """An argument is of a kind that cannot be used."""


class NumericalError(DeepLFMError, ValueError):
    """It is raised when a computation broke down, as for a matrix that is not positive definite."""


class ProcessError(DeepLFMError, RuntimeError):
    """Processes that train together have lost each other; the last checkpoint is kept."""


class FitWarning(UserWarning):
    """The check of a fit found that a plain rival does better, or that intervals do not hold."""


class DataWarning(UserWarning):
    """Data or inputs can be used, but are probably not what was meant; one sentence says why."""
