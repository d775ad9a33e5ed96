"""DATASETS: series and tables with their tests, made here or read from files.

    from deeplfm.paper.datasets.toy import toy
    series = toy("figure", seed=0);   series.training();   series.test("imputation")

One file, one data set, which the decorator `data_set` registers for experiments.
"""

from deeplfm.paper.datasets.registry import Folder, data_set, registered_data_sets

__all__ = ["Folder", "data_set", "registered_data_sets"]
