"""Threads: small operations are quicker on one than on several that wait for each other."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[int]:
    """Torch has one thread inside, and those it had again after; gives how many it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """`work` of every item, by as many workers as torch has threads; compiled code runs at once.

    So do kernels of an accelerator: every worker has a stream of its own.
    """

    def own(item: Item) -> Result:
        if not torch.cuda.is_initialized():
            return work(item)
        with torch.cuda.stream(torch.cuda.Stream()):
            return work(item)

    with one_thread() as workers, ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(own, items))
