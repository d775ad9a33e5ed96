"""EVALUATION: the predictive distribution, and scores of it."""

from deeplfm.evaluation import metrics
from deeplfm.evaluation.predictive import Predictive

__all__ = ["Predictive", "metrics"]
