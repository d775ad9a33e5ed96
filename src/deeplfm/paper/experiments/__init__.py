"""EXPERIMENTS: tables and figures as data; one run is one JSON."""

from deeplfm.paper.experiments.decay import reproduce_decay
from deeplfm.paper.experiments.planted import reproduce_planted
from deeplfm.paper.experiments.registry import Cell, cells, smoke
from deeplfm.paper.experiments.reproduce import choose, reproduce
from deeplfm.paper.experiments.run import run
from deeplfm.paper.experiments.sweep import Sweep
from deeplfm.paper.experiments.table import Table
from deeplfm.paper.experiments.tables import tables

__all__ = [
    "Cell",
    "Sweep",
    "Table",
    "cells",
    "choose",
    "reproduce",
    "reproduce_decay",
    "reproduce_planted",
    "run",
    "smoke",
    "tables",
]
