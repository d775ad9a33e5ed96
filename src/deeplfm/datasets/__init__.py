"""DATASETS: signals with their splits, made here or read from where they lie."""

from deeplfm.datasets.cardiac import cardiac
from deeplfm.datasets.physio import physio
from deeplfm.datasets.series import Series
from deeplfm.datasets.toy import toy

__all__ = ["Series", "cardiac", "physio", "toy"]
