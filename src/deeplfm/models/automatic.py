"""The recipe for a table of several inputs, by its size: one layer, started by its evidence.

Each output is a sum of a slow and a fast force over all inputs, through an ODE of first order along
each input. How much an input counts is its lengthscale, found by evidence. How it is trained is in
`deeplfm.training.automatic`.
"""

import math

from deeplfm.greens_functions import FirstOrder
from deeplfm.models.fourier_dlfm import FourierDLFM
from deeplfm.shapes import check_count

_FORCES = 2  # a slow and a fast one; with one, tables that mix trends and details lose both
_FEW, _MANY = 300, 400  # waves of a force
_LARGE = 4000  # rows from which there are many
_FEWEST = 50
_TIME_CONSTANT = 0.4  # of the ODE at first, in standard deviations of an input


def recipe_for_table(rows: int, inputs: int, outputs: int = 1) -> FourierDLFM:
    """The recipe for `rows` of several `inputs` and one or more `outputs`.

    Memory and time grow with the outputs times the square of the waves, so that several outputs
    have fewer waves each.

    Example:
        >>> from deeplfm.models.automatic import recipe_for_table
        >>> recipe = recipe_for_table(rows=300, inputs=10)
        >>> recipe.num_layers, recipe.num_forces, recipe.num_features
        (1, 2, 300)
    """
    for name, count in (("rows", rows), ("inputs", inputs), ("outputs", outputs)):
        check_count(name, count)
    waves = _FEW if rows < _LARGE else _MANY
    return FourierDLFM(
        num_layers=1,
        num_forces=_FORCES,
        num_features=max(_FEWEST, round(waves / math.sqrt(outputs))),
        greens_function=FirstOrder(1 / _TIME_CONSTANT, normalised=True),
        memory="infinite",
        inputs="product",
        frequency_init="evidence",
        units="scaled",
    )
