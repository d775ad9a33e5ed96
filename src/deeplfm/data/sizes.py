"""How large and how small numbers may be: their squares must be numbers too.

    check_targets_size(y, names);   check_ranges(x, names)

Within these bounds a change of units changes nothing else; outside of them computations overflow.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError

Values = NDArray[np.float64]

_LEAST, _MOST = 1e-150, 1e150  # of a target: its square is a number
_SHORTEST, _LONGEST = 1e-20, 1e20  # ranges of inputs: of their squares float32 knows some digits


def check_targets_size(y: Values, names: Sequence[str]) -> None:
    """Outputs [N, D], NaN for gaps, are 0 or of a size that can be computed with."""
    size = np.fmax.reduce(np.abs(y), axis=0, initial=0.0)
    wrong = (size > _MOST) | ((size > 0) & (size < _LEAST))
    if wrong.any():
        k = int(wrong.argmax())
        raise InputError(
            f"outputs must be 0, or between {_LEAST:g} and {_MOST:g} in size; got {size[k]:g} as "
            f"the largest of {names[k]!r}. Change its unit."
        )


def check_ranges(x: Values, names: Sequence[str]) -> None:
    """Inputs [N, P] have ranges that can be computed with; a constant one has none."""
    with np.errstate(over="ignore"):
        spans = np.ptp(x, axis=0)
    size = np.abs(x).max(0)
    wrong = (spans > _LONGEST) | ((spans > 0) & (spans < _SHORTEST)) | (size > _MOST)
    if wrong.any():
        k = int(wrong.argmax())
        raise InputError(
            f"inputs must range over {_SHORTEST:g} to {_LONGEST:g}; {names[k]!r} does over "
            f"{spans[k]:g}, up to {size[k]:g} in size. Change its unit."
        )
