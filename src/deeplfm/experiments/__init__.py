"""EXPERIMENTS: tables and figures as data; one run is one JSON."""

from deeplfm.experiments.decay import reproduce_decay
from deeplfm.experiments.registry import Cell, cells
from deeplfm.experiments.run import run

__all__ = ["Cell", "cells", "reproduce_decay", "run"]
