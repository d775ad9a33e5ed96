"""Random numbers, drawn where their generator lives and moved to where they are used.

With a generator of the CPU one seed gives the same numbers on every device. Training keeps its
generator on the device it trains on, and nothing moves.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def normal(shape: Sequence[int], generator: torch.Generator | None, like: Tensor) -> Tensor:
    """Standard normal numbers, in the type and on the device of `like`."""
    device = like.device if generator is None else generator.device
    numbers = torch.randn(tuple(shape), generator=generator, dtype=like.dtype, device=device)
    return numbers.to(like.device)


def uniform(
    shape: Sequence[int], generator: torch.Generator | None, like: Tensor, end: float = 1.0
) -> Tensor:
    """Numbers from [0, end), in the type and on the device of `like`."""
    device = like.device if generator is None else generator.device
    numbers = torch.empty(tuple(shape), dtype=like.dtype, device=device)
    return numbers.uniform_(0, end, generator=generator).to(like.device)


def derived_seed(seed: int, *numbers: int) -> int:
    """A seed that has nothing in common with `seed`, nor with those of other numbers."""
    source = np.random.SeedSequence((seed % 2**64, *numbers))
    return int(source.generate_state(1, np.uint64)[0])
