"""How many points a warp takes: by simple rules from shapes alone, as graph capture needs."""


def block_of(points: int, most: int) -> int:
    """A power of two from 32 to `most` that leaves few lanes without a point."""
    block = most
    while block > 32 and 7 * blocks(points, block) * block > 8 * points:
        block //= 2
    return block


def blocks(points: int, block: int) -> int:
    return max(1, -(-points // block))


def divisor_of(number: int, most: int) -> int:
    """The largest divisor that is at most `most`."""
    return next(part for part in range(min(number, most), 0, -1) if number % part == 0)
