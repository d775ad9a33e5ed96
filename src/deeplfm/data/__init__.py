"""DATA: what is fitted. Units, scaling, files and tables of users; knows no model."""

from deeplfm.data.cardiac import cardiac
from deeplfm.data.dataset import Dataset, dataset, inputs_table
from deeplfm.data.frames import dimensions, from_long
from deeplfm.data.scaling import Scaling, Statistics, TargetRule, fit_scaling, scaling_from
from deeplfm.data.series import Observations, Series, Table

__all__ = [
    "Dataset",
    "Observations",
    "Scaling",
    "Series",
    "Statistics",
    "Table",
    "TargetRule",
    "cardiac",
    "dataset",
    "dimensions",
    "fit_scaling",
    "from_long",
    "inputs_table",
    "scaling_from",
]
