"""EXPERIMENTS: tables and figures as data; one run is one JSON."""

from deeplfm.experiments.decay import reproduce_decay
from deeplfm.experiments.registry import Cell, cells, smoke
from deeplfm.experiments.reproduce import choose, reproduce
from deeplfm.experiments.run import run
from deeplfm.experiments.sweep import Sweep
from deeplfm.experiments.tables import Table, tables

__all__ = [
    "Cell",
    "Sweep",
    "Table",
    "cells",
    "choose",
    "reproduce",
    "reproduce_decay",
    "run",
    "smoke",
    "tables",
]
