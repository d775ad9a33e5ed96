"""TRAINING: the loop, what is trainable when, checkpoints."""

from deeplfm.training.loop import Trainer
from deeplfm.training.schedule import Stage, Training

__all__ = ["Stage", "Trainer", "Training"]
