"""The deep model: layers composed, and a likelihood at the end.

    path = model.draw(S, generator);   f = path(X): [N, P] → [S, N, D]

A draw of the model is the composition of draws of its layers, so it is a function too.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import cast, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.layers import Layer, Path
from deeplfm.likelihoods import Likelihood
from deeplfm.models.skip import Skip
from deeplfm.sums import Backend


@final
class DeepLFM(nn.Module):
    """Layers, how X re-enters between them, and the likelihood."""

    def __init__(self, layers: Sequence[Layer], skip: Skip, likelihood: Likelihood) -> None:
        super().__init__()
        if not layers:
            raise InputError("layers must hold one or more; got none. Add a layer.")
        self.layers = nn.ModuleList(layers)
        self.skip = skip
        self.likelihood = likelihood
        inputs = layers[0].num_inputs
        for number, (below, above) in enumerate(itertools.pairwise(layers), start=1):
            width = skip.width(below.num_outputs, inputs)
            if above.num_inputs != width:
                raise InputError(
                    f"layer {number + 1} must have {width} inputs (what layer {number} and the "
                    f"skip give it); got {above.num_inputs}. Make the widths agree."
                )

    def draw(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> "DeepPath":
        """`num_samples` functions of the whole model; `backend` says how sums are computed."""
        paths = tuple(layer.draw(num_samples, generator, backend) for layer in self.stack)
        return DeepPath(paths, self.skip, num_samples)

    def draw_for_training(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
        *,
        local: bool = False,
    ) -> "DeepPath":
        """What one training step evaluates (`Layer.draw_for_training`)."""
        paths = tuple(
            layer.draw_for_training(num_samples, generator, backend, local=local)
            for layer in self.stack
        )
        return DeepPath(paths, self.skip, num_samples)

    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        """The sum over layers."""
        return reduce(torch.add, [layer.kl(backend) for layer in self.stack])

    @property
    def stack(self) -> list[Layer]:
        """The layers, first to last."""
        return cast(list[Layer], list(self.layers))  # a ModuleList forgets what it holds


@final
@dataclass(frozen=True, eq=False)
class DeepPath:
    """A composition of drawn functions."""

    paths: tuple[Path, ...]
    skip: Skip
    num_samples: int

    def __call__(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "S N D"]:
        return self.values(x, len(self.paths) - 1)

    def values(self, x: Float[Tensor, "N P"], layer: int) -> Float[Tensor, "S N D"]:
        """The functions of one layer when the model is asked at `x`."""
        f = self.paths[0](x[None])
        for path in self.paths[1 : layer + 1]:
            f = path(f, self.skip.shared(x))
        return f

    def inputs(self, x: Float[Tensor, "N P"], layer: int) -> Float[Tensor, "S3 N P2"]:
        """What a layer sees when the model is asked at `x`; one set for all at the first."""
        return x[None] if layer == 0 else self.skip(self.values(x, layer - 1), x)
