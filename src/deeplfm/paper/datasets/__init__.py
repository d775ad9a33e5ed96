"""DATASETS: signals and tables with their splits, made here or read from where they lie."""

from deeplfm.paper.datasets.charis import charis
from deeplfm.paper.datasets.physio import physio
from deeplfm.paper.datasets.toy import toy
from deeplfm.paper.datasets.uci import uci
from deeplfm.paper.datasets.uneven import uneven

__all__ = ["charis", "physio", "toy", "uci", "uneven"]
