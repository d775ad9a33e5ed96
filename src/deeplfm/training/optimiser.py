"""AdamW, by PyTorch's own kernel and without its class, whose first use imports a compiler.

That import takes a second or more, which is longer than most starts of a fit.
"""

from collections.abc import Iterable, Mapping
from typing import final

import torch
from torch import Tensor

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


@final
class AdamW:
    """Updates `parameters` in place from their gradients; those without one stay.

    All are of one type and on one device. Each has its own number of updates and moments.
    The rate is a tensor there, so that it can change under a step that was recorded as a graph.
    """

    def __init__(self, parameters: Iterable[Tensor], rate: float, weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        device = self.parameters[0].device
        self._rate = torch.tensor(rate, device=device)
        self._updates = torch.zeros(len(self.parameters), device=device)
        self._counts = list(self._updates.unbind())  # the same numbers, one by one
        self._means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self.parameters]

    def set_rate(self, rate: float) -> None:
        """The rate from the next step on."""
        self._rate.fill_(rate)

    def forget_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def forget_moments(self) -> None:
        """Begin afresh."""
        for tensor in (self._updates, *self._means, *self._squares):
            tensor.zero_()

    def state(self) -> dict[str, Tensor]:
        """The moments of the parameters that were updated, named by their places."""
        return {
            f"{index}.{name}": tensor.clone()
            for index, count in enumerate(self._updates.tolist())
            if count > 0
            for name, tensor in self._named(index).items()
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """What `state` gave; a parameter that is not in it was never updated."""
        self.forget_moments()
        for index in range(len(self.parameters)):
            for name, tensor in self._named(index).items():
                if f"{index}.{name}" in state:
                    tensor.copy_(state[f"{index}.{name}"])

    @torch.no_grad()
    def step(self, limit: float | None = None) -> None:
        """One update; gradients that are longer than `limit`, all together, are shortened to it."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        if not gradients:
            return
        if limit is not None:
            _shorten(gradients, limit)
        parameters, means, squares = self.parameters, self._means, self._squares
        counts, counters = self._counts, [self._updates]
        if len(gradients) < len(parameters):
            moved = [k for k, p in enumerate(parameters) if p.grad is not None]
            parameters, means, squares, counts = (
                [column[k] for k in moved] for column in (parameters, means, squares, counts)
            )
            counters = counts
        torch._foreach_add_(counters, 1)
        torch._fused_adamw_(
            parameters,
            gradients,
            means,
            squares,
            [],
            counts,
            lr=self._rate,
            beta1=_BETA1,
            beta2=_BETA2,
            weight_decay=self.weight_decay,
            eps=_EPS,
            amsgrad=False,
            maximize=False,
        )

    def _named(self, index: int) -> dict[str, Tensor]:
        """The state of one parameter, by the names that files have for it."""
        return {
            "step": self._counts[index],
            "exp_avg": self._means[index],
            "exp_avg_sq": self._squares[index],
        }


def _shorten(gradients: list[Tensor], limit: float) -> None:
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if norm.device.type != "cpu" or not norm.item() <= limit:  # to look is free on a CPU alone
        torch._foreach_mul_(gradients, torch.clamp(limit / (norm + 1e-6), max=1.0))
