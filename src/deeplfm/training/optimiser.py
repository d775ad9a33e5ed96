"""AdamW, by PyTorch's own functions and without its class, whose first use imports a compiler.

That import takes a second or more, which is longer than most starts of a fit.
"""

from collections.abc import Iterable
from typing import final

import torch
from torch import Tensor
from torch.optim.adamw import adamw

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


@final
class AdamW:
    """Updates `parameters` in place from their gradients; those without one stay.

    All are on one device. `state` holds the step and the moments of each, from its first update on.
    The rate is a tensor there, so that it can change under a step that was recorded as a graph.
    """

    def __init__(self, parameters: Iterable[Tensor], rate: float, weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._rate = torch.tensor(rate, device=self.parameters[0].device)

    def set_rate(self, rate: float) -> None:
        """The rate from the next step on."""
        self._rate.fill_(rate)

    def forget_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One update."""
        moved = [(p, p.grad) for p in self.parameters if p.grad is not None]
        if not moved:
            return
        states = [self._state_of(parameter) for parameter, _ in moved]
        adamw(
            [parameter for parameter, _ in moved],
            [gradient for _, gradient in moved],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            capturable=self._rate.is_cuda,
            amsgrad=False,
            beta1=_BETA1,
            beta2=_BETA2,
            lr=self._rate,
            weight_decay=self.weight_decay,
            eps=_EPS,
            maximize=False,
        )

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]
