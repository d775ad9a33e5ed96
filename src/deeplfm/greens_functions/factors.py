"""The real factors of a characteristic polynomial: p + a, and (p + α)² - q.

A factor holds numbers (tensors of one shape) and answers for itself; `dynamics` multiplies them.
"""

from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from deeplfm.shapes import complex_dtype


class Linear(NamedTuple):
    """The factor p + a."""

    rate: Tensor

    @property
    def degree(self) -> int:
        """The number of its poles."""
        return 1

    @property
    def at_zero(self) -> Tensor:
        """The factor at p = 0."""
        return self.rate

    def at(self, p: Tensor) -> Tensor:
        """The factor at a complex or real `p`."""
        return p + self.rate

    def at_frequency(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        """The real and the imaginary part of the factor at p = jω."""
        return self.rate, omega

    def poles(self) -> list[Tensor]:
        """s with a zero of the factor at p = -s, complex."""
        return [self.rate.to(complex_dtype(self.rate.dtype))]

    def coefficients(self) -> list[Tensor]:
        """The factor as a polynomial, lowest power first."""
        return [self.rate, torch.ones_like(self.rate)]


class Quadratic(NamedTuple):
    """The factor (p + α)² - q, with α² - q given on its own since it may cancel."""

    damping: Tensor
    discriminant: Tensor
    product: Tensor

    @property
    def degree(self) -> int:
        """The number of its poles."""
        return 2

    @property
    def at_zero(self) -> Tensor:
        """The factor at p = 0."""
        return self.product

    def at(self, p: Tensor) -> Tensor:
        """The factor at a complex or real `p`."""
        return p * (p + 2 * self.damping) + self.product

    def at_frequency(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        """The real and the imaginary part of the factor at p = jω."""
        return self.product - omega.square(), 2 * self.damping * omega

    def poles(self) -> list[Tensor]:
        """Both s with a zero of the factor at p = -s, complex."""
        d = torch.sqrt(self.discriminant.to(complex_dtype(self.discriminant.dtype)))
        far = self.damping + torch.where(self.damping < 0, -d, d)  # no cancellation
        near = self.product / torch.where(far == 0, torch.ones_like(far), far)
        return [near, far]

    def coefficients(self) -> list[Tensor]:
        """The factor as a polynomial, lowest power first."""
        return [self.product, 2 * self.damping, torch.ones_like(self.product)]


Factor: TypeAlias = Linear | Quadratic


def complex_product(
    left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """The product of two complex numbers, by real and imaginary parts."""
    (a, b), (c, d) = left, right
    return a * c - b * d, a * d + b * c


def polynomial_product(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
    """The coefficients of the product of two polynomials, lowest power first."""
    product = [torch.zeros_like(left[0]) for _ in range(len(left) + len(right) - 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] = product[i + j] + a * b
    return product
