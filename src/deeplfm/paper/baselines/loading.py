"""A saved baseline, read from its folder: only classes that were registered are made."""

from pathlib import Path

from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import SETTINGS, Baseline
from deeplfm.paper.baselines.registry import registered_baselines
from deeplfm.registry import registered
from deeplfm.regressor import saving
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.settings import from_json


def load(folder: Path | str, device: str = "auto") -> Baseline:
    """The model that `Baseline.save` wrote to `folder`; its predictions are those it had then.

    The file that defines the class of a baseline of your own must have been imported before.
    """
    folder = Path(folder)
    settings = saving.read_settings(folder / SETTINGS)
    registered_baselines()  # which imports the files that register the baselines of this package
    cls = registered(settings["baseline"])
    if not issubclass(cls, Baseline):
        raise InputError(
            f"{folder} must hold a baseline; got the class {cls.__name__}. Use deeplfm.load."
        )
    parameters = from_json(settings["parameters"])
    return cls(**parameters).restore(folder, settings, checked_device(device))
