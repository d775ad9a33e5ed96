"""DATASETS: signals and tables with their splits, made here or read from where they lie."""

from deeplfm.datasets.cardiac import cardiac
from deeplfm.datasets.charis import charis
from deeplfm.datasets.physio import physio
from deeplfm.datasets.series import Observations, Series, Table
from deeplfm.datasets.toy import toy
from deeplfm.datasets.uci import uci
from deeplfm.datasets.uneven import uneven

__all__ = [
    "Observations", "Series", "Table", "cardiac", "charis", "physio", "toy", "uci", "uneven",
]  # fmt: skip
