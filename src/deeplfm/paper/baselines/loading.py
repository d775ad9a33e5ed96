"""A saved baseline, read from its folder: only classes that were registered are made."""

from pathlib import Path

from deeplfm.data import files
from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import NUMBERS, SETTINGS, Baseline
from deeplfm.paper.baselines.registry import registered_baselines
from deeplfm.registry import registered
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.opening import open_saved
from deeplfm.regressor.settings import from_json


def load(folder: Path | str, device: str = "auto") -> Baseline:
    """The model that `Baseline.save` wrote to `folder`; its predictions are those it had then.

    The file that defines the class of a baseline of your own must have been imported before.
    """
    folder = Path(folder)
    saved = open_saved(folder, SETTINGS, NUMBERS)
    settings = saved.settings
    registered_baselines()  # which imports the files that register the baselines of this package
    with files.understood(saved.path):
        cls = registered(settings["baseline"])
        if not issubclass(cls, Baseline):
            raise InputError(
                f"{folder} must hold a baseline; got the class {cls.__name__}. Use deeplfm.load."
            )
        parameters = from_json(settings["parameters"])
        return cls(**parameters).restore(settings, saved.numbers, checked_device(device))
