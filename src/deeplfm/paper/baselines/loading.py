"""A saved baseline, read from its folder: only classes that are known here are made."""

from pathlib import Path

from deeplfm.errors import InputError
from deeplfm.paper.baselines.autoregressive import AutoregressiveRidge
from deeplfm.paper.baselines.deep_gp import DeepGP
from deeplfm.paper.baselines.door import SETTINGS, Baseline
from deeplfm.paper.baselines.exact_gp import ExactGP, PeriodicGP
from deeplfm.paper.baselines.lag_ridge import LagRidge
from deeplfm.paper.baselines.sparse import SLMC, SVGP
from deeplfm.paper.baselines.spectral_mixture import SpectralMixtureGP
from deeplfm.paper.baselines.trees import BoostedTrees
from deeplfm.regressor import saving
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.settings import from_json

_KNOWN: dict[str, type[Baseline]] = {
    cls.__name__: cls
    for cls in (
        AutoregressiveRidge,
        BoostedTrees,
        DeepGP,
        ExactGP,
        LagRidge,
        PeriodicGP,
        SLMC,
        SVGP,
        SpectralMixtureGP,
    )
}


def load(folder: Path | str, device: str = "auto") -> Baseline:
    """What `Baseline.save` wrote, ready to predict; predictions are those of the saved model."""
    folder = Path(folder)
    settings = saving.read_settings(folder / SETTINGS)
    name = settings["baseline"]
    if name not in _KNOWN:
        raise InputError(
            f"a baseline must be one of {sorted(_KNOWN)}; got {name!r}. "
            "Use a newer version of deeplfm."
        )
    parameters = from_json(settings["parameters"])
    return _KNOWN[name](**parameters)._restore(folder, settings, checked_device(device))
