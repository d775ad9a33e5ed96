"""The synthetic cardiac signals of `deeplfm.data.cardiac`, as an experiment."""

from deeplfm.data import Series, cardiac
from deeplfm.paper.datasets.registry import Folder, data_set


@data_set("cardiac", seeds=5)
def cardiac_record(record: str, seed: int, path: Folder) -> Series:
    """The signals of a seed; no file is read."""
    return cardiac(seed=seed)
