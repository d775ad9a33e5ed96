"""The studies by name: two springs and a hidden force, a known input, seven mixed channels."""

from typing import Any

from deeplfm.paper.experiments.known_inputs import KnownInputs
from deeplfm.paper.experiments.mixed_channels import MixedChannels
from deeplfm.paper.experiments.springs import HiddenForce
from deeplfm.paper.experiments.study import Study

STUDIES: dict[str, Study[Any]] = {
    "springs": HiddenForce(),
    "driven": KnownInputs(),
    "seven": MixedChannels(),
}
