"""Models that a prediction averages over: drawn parameters, each with a drawn clock."""

from deeplfm.errors import InputError
from deeplfm.models.markov_model import MarkovModel
from deeplfm.training.clock import ClockPosterior
from deeplfm.training.laplace import Posterior, with_flat


def drawn_members(
    model: MarkovModel, posterior: Posterior, clock: ClockPosterior | None, count: int, seed: int
) -> list[MarkovModel]:
    """Copies of a model with drawn parameters and clocks; each depends on its number alone."""
    found = [with_flat(model, values) for values in posterior.draw(count, seed)]
    if clock is not None:
        for member, own in zip(found, clock.draw(count, seed), strict=True):
            member.clock = own
    return found


def check_layer(layer: int) -> None:
    """It is an error if a layer is asked for that a shallow model does not have."""
    if layer != 0:
        raise InputError(f"layer must be 0, there is one; got {layer}. Pass 0.")
