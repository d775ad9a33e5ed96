"""The training of `models.automatic.recipe_for_table`: a few gentle steps from its start.

The start is the exact posterior of the weights at the settings of greatest evidence, which noisy
steps as long as those of `Training()` make worse. These go on with the bound without harm, and
take seconds.
"""

from deeplfm.shapes import check_count
from deeplfm.training.schedule import Training

_STEPS, _RATE = 10, 3e-4
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
