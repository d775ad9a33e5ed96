"""TRAINING: the loop, what is trainable when, restarts, checkpoints."""

from deeplfm.training.distributed import Processes, join
from deeplfm.training.loop import Trainer
from deeplfm.training.restarts import Race
from deeplfm.training.schedule import Stage, Training

__all__ = ["Processes", "Race", "Stage", "Trainer", "Training", "join"]
