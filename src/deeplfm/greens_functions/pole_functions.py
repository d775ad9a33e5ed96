"""What a pole is asked for: a linear functional of e^{-sv}, so that each ODE is written once.

    F_n(s) = ∫ v^n e^{-sv} μ(dv);   an ODE answers the divided difference of F_0 at its poles

The Green's function itself is the case μ = δ(v - t), here; responses to forces are the others.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor

from deeplfm.errors import InputError


class PoleFunction(ABC):
    """F_n(s) for one measure μ."""

    @property
    @abstractmethod
    def is_real(self) -> bool:
        """Whether μ is real: then conjugate poles give conjugate values."""

    @abstractmethod
    def at(self, pole: Tensor) -> Tensor:
        """F_0(s), for a real or complex pole."""

    @abstractmethod
    def moment(self, pole: Tensor, order: int) -> Tensor:
        """F_n(s) for a real pole, where poles are repeated."""

    @abstractmethod
    def reach(self, pole: Tensor) -> Tensor:
        """The lag v that counts at a real pole: |F_n| is about n! reach^{n-1} |F_1| or less."""

    @property
    @abstractmethod
    def longest(self) -> float | None:
        """The longest lag there is, None if the memory is infinite."""

    @property
    @abstractmethod
    def arguments(self) -> dict[str, Tensor]:
        """What μ depends on, by name: must fit the parameters of the ODE."""

    @abstractmethod
    def kept(self, where: Tensor) -> "PoleFunction":
        """The same where asked, harmless elsewhere: no overflow, no infinite gradient."""

    @abstractmethod
    def instant(self) -> Tensor:
        """The answer of the ODE without dynamics, G = δ."""


@final
class ImpulseResponse(PoleFunction):
    """F_n(s) = t^n e^{-st}: the Green's function at lag t ≥ 0."""

    def __init__(self, t: Tensor) -> None:
        self.t = t

    @property
    def is_real(self) -> bool:
        return True

    def at(self, pole: Tensor) -> Tensor:
        return torch.exp(-pole * self.t)

    def moment(self, pole: Tensor, order: int) -> Tensor:
        # t^n e^{-st} without forming t^n, which may overflow where the product does not.
        return (self.t * torch.exp(-pole * self.t / order)) ** order

    def reach(self, pole: Tensor) -> Tensor:
        return self.t

    @property
    def longest(self) -> float | None:
        return float(self.t.detach().max()) if self.t.numel() else 0.0

    @property
    def arguments(self) -> dict[str, Tensor]:
        return {"t": self.t}

    def kept(self, where: Tensor) -> "ImpulseResponse":
        return ImpulseResponse(torch.where(where, self.t, torch.zeros_like(self.t)))

    def instant(self) -> Tensor:
        raise InputError("G = δ has no values; got a call of NoDynamics. Use its responses.")
