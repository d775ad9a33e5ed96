"""EVALUATION: the predictive distribution, and scores of it."""

from deeplfm.evaluation import metrics
from deeplfm.evaluation.components import Components
from deeplfm.evaluation.families import NormalComponents, PointComponents, StudentTComponents
from deeplfm.evaluation.predictive import Predictive
from deeplfm.evaluation.support import REAL_LINE, Support

__all__ = [
    "REAL_LINE",
    "Components",
    "NormalComponents",
    "PointComponents",
    "Predictive",
    "StudentTComponents",
    "Support",
    "metrics",
]
