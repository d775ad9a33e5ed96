"""ONE LAYER is a distribution over functions from P inputs to D outputs.

    path = layer.draw(S, generator)      f = path(x): [S, N, P] → [S, N, D]

Nothing of a draw is stored on the module. A layer owns its parameters and their KL; depth, data and
sample counts are other rooms' business.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.greens_functions import GreensFunction
from deeplfm.shapes import check_count
from deeplfm.sums import Backend
from deeplfm.variational.gaussians import VariationalGaussian

_FEATURES = 64  # numbers that a layer of an unknown kind may form per input and output


@runtime_checkable
class Path(Protocol):
    """Drawn functions, the same wherever they are evaluated.

    `shared` are inputs that all samples have in common, after those of `x`: what they need is
    worked out once.
    """

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]: ...


def join(
    x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None
) -> Float[Tensor, "S3 N P3"]:
    """All inputs of every sample in one table."""
    return x if shared is None else torch.cat([x, shared.expand(len(x), -1, -1)], dim=-1)


class Layer(nn.Module, ABC):
    """A random function of P inputs with D outputs: what every kind of layer says of itself.

    A subclass writes `draw`, `kl` and `lengthscales`. The rest has a default that holds for any
    layer; a layer that is driven by forces also writes `forces` and `force_names`.

    num_inputs, num_outputs: P and D.
    greens_function:         the ODE between forces and outputs; `NoDynamics()` where there is none.
    """

    def __init__(self, num_inputs: int, num_outputs: int, greens_function: GreensFunction) -> None:
        super().__init__()
        check_count("num_inputs", num_inputs)
        check_count("num_outputs", num_outputs)
        self.num_inputs, self.num_outputs = num_inputs, num_outputs
        self.greens_function = greens_function

    @abstractmethod
    def draw(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> Path:
        """`num_samples` functions: evaluated twice, in chunks or on a grid, they are the same.

        They hold numbers: they stay what they are when parameters of the layer move.
        """

    @abstractmethod
    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        """KL of everything this layer infers from its prior, each term once."""

    @abstractmethod
    def lengthscales(self) -> Float[Tensor, " P"]:
        """How far apart along each input the forces vary: of several the shortest.

        Infinite where no force varies along the input.
        """

    def draw_for_training(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
        *,
        local: bool = False,
    ) -> Path:
        """What a training step evaluates once: may share or sample what a function may not.

        `local` asks for values at the data instead of functions, from layers that can.
        """
        return self.draw(num_samples, generator, backend)

    def forces(self, tau: Float[Tensor, "S3 N P"], path: Any) -> Float[Tensor, "S N F"]:
        """The forces behind a path that this layer drew, at `tau`; `force_names` says which."""
        raise InputError(
            f"the layer must be driven by latent forces; a {type(self).__name__} has none. "
            "Ask for its hidden_functions instead."
        )

    def force_names(self, functions: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
        """What the columns of `forces` are; none where no force drives the layer."""
        return ()

    def parameter_groups(self) -> Mapping[str, list[nn.Parameter]]:
        """The parameters by role, for schedules: weights, frequencies, hyperparameters.

        Unless a layer says otherwise, weights are the parameters of its variational Gaussians.
        """
        weights = [
            parameter
            for module in self.modules()
            if isinstance(module, VariationalGaussian)
            for parameter in module.parameters()
        ]
        known = {id(parameter) for parameter in weights}
        others = [parameter for parameter in self.parameters() if id(parameter) not in known]
        return {"weights": weights, "hyperparameters": others}

    @property
    def elements(self) -> int:
        """How many numbers one sample at one point takes while a path is evaluated.

        Predictions are made in chunks by it. The default has room for some dozens of features per
        input and output; a layer that forms many more says so.
        """
        return _FEATURES * (self.num_inputs + self.num_outputs)

    def recover(self) -> bool:
        """After a loss that was not finite: whether something was changed that makes it safer."""
        return False
