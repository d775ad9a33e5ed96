"""How the work is cut up: by simple rules from shapes alone, as graph capture needs.

A warp that holds more points needs fewer instructions for each, but a device has hundreds of
schedulers to keep busy, and a block that reaches beyond the last point wastes lanes.
"""

_WARPS = 512  # about one for each scheduler of a large device


def block_of(points: int, rows: int, most: int) -> int:
    """Points of a warp, a power of two from 32 to `most`, where `rows` blocks run side by side."""
    block = most
    while block > 32 and (_idle(points, block) or rows * blocks(points, block) < _WARPS):
        block //= 2
    return block


def blocks(points: int, block: int) -> int:
    return -(-points // block)


def divisor_of(number: int, most: int) -> int:
    """The largest divisor that is at most `most`."""
    return next(part for part in range(min(number, most), 0, -1) if number % part == 0)


def _idle(points: int, block: int) -> bool:
    """Whether more than an eighth of the lanes have no point."""
    return 7 * blocks(points, block) * block > 8 * points
