"""The training of `models.automatic.recipe_for_table`: a few careful steps from its start.

The start is the exact posterior of the weights at the settings of greatest evidence. Steps as long
as those of `Training()` would shake it, for as long as many of them last.
"""

from deeplfm.shapes import check_count
from deeplfm.training.schedule import Training

_STEPS, _RATE = 100, 0.003
_BATCH = 2000  # rows, of a table that has more


def training_for_table(rows: int) -> Training:
    """The training for a table of `rows`.

    Example:
        >>> from deeplfm.training.automatic import training_for_table
        >>> training_for_table(300).batch_size, training_for_table(9000).batch_size
        (None, 2000)
    """
    check_count("rows", rows)
    batch = None if rows <= _BATCH else _BATCH
    return Training(steps=_STEPS, learning_rate=_RATE, batch_size=batch)
