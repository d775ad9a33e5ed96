"""What a pole is asked for: a linear functional of e^{-sv}, so that each ODE is written once.

    F_n(s) = ∫ v^n e^{-sv} μ(dv);   an ODE answers the divided difference of F_0 at its poles

The Green's function itself is the case μ = δ(v - t), here; responses to forces are the others.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor


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
        return self.t**order * self.at(pole)

    def reach(self, pole: Tensor) -> Tensor:
        return self.t

    def instant(self) -> Tensor:
        raise TypeError("δ has no values")
