"""The prior of the latent forces: independent Gaussian processes with one kind of kernel.

    k_q(τ, τ') = σ_q² k(r),  r² = Σ_p (τ_p - τ'_p)² / ℓ_qp²
    a draw:  θ = scale · N(0, diag(1/ℓ²)),  β ~ U(0, 2π)

Owns ℓ and σ²; `kernels` says what k is; knows no physics.
"""

import math
from collections.abc import Collection, Mapping
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.forces.kernels import SMOOTH, ForceKernel
from deeplfm.forces.path import ForcePath
from deeplfm.randomness import normal, uniform
from deeplfm.shapes import as_tensors, check_count, check_finite, check_shape
from deeplfm.variational.parameters import Bounds, Quantity, check_names, in_type_of, learns


@final
class ForcePrior(nn.Module):
    """Q independent forces over P inputs; numbers are shared out, tensors are [Q, P] and [Q].

    With `shared_lengthscale` all forces have, and learn, the same one.
    """

    def __init__(
        self,
        lengthscale: Tensor | float = 1.0,
        variance: Tensor | float = 1.0,
        *,
        num_forces: int = 1,
        num_inputs: int = 1,
        kernel: ForceKernel = SMOOTH,
        shared_lengthscale: bool = False,
        learn: bool | Collection[str] = True,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        super().__init__()
        bounds = bounds or {}
        check_names(("lengthscale", "variance"), learn, bounds)
        check_count("num_forces", num_forces)
        check_count("num_inputs", num_inputs)
        values = {"lengthscale": lengthscale, "variance": variance}
        self.num_forces, self.shared_lengthscale = num_forces, shared_lengthscale
        self.kernel = kernel
        rows = 1 if shared_lengthscale else num_forces
        shapes = {"lengthscale": (rows, num_inputs), "variance": (num_forces,)}
        self.quantities = nn.ModuleDict()
        for name, value in values.items():
            value = in_type_of(value, values.values())
            quantity = Quantity(name, value, learn=learns(name, learn), bounds=bounds.get(name))
            try:
                self.quantities[name] = quantity.tiled(*shapes[name])
            except RuntimeError:
                raise InputError(
                    f"{name} must be a number or {list(shapes[name])}; got "
                    f"{tuple(quantity.start.shape)}. Check num_forces and num_inputs."
                ) from None
        as_tensors({name: self.quantities[name]()[0] for name in values})

    @property
    def lengthscale(self) -> Float[Tensor, "Q P"]:
        """ℓ."""
        return self.lengthscale_rows.expand(self.num_forces, -1)

    @property
    def lengthscale_rows(self) -> Float[Tensor, "#Q P"]:
        """ℓ as it is learnt: one row where it is shared."""
        value: Tensor = self.quantities["lengthscale"]()
        return value

    def set_lengthscale(self, value: Float[Tensor, " P"]) -> None:
        """The same for all forces."""
        quantity = self.quantities["lengthscale"]
        if isinstance(quantity, Quantity):
            quantity.set(value.expand_as(quantity.start))

    @property
    def variance(self) -> Float[Tensor, "Q"]:
        """σ²."""
        value: Tensor = self.quantities["variance"]()
        return value

    def covariance(
        self, x: Float[Tensor, "*Q N P"], x2: Float[Tensor, "*Q2 N2 P"]
    ) -> Float[Tensor, "Q N N2"]:
        """k_q(x, x2); inputs are shared by the forces [N, P] or given for each [Q, N, P]."""
        x, x2 = (self.checked(name, value) for name, value in (("x", x), ("x2", x2)))
        return self.covariance_of(x, x2, self.lengthscale, self.variance)

    def covariance_of(
        self, x: Tensor, x2: Tensor, lengthscale: Tensor, variance: Tensor
    ) -> Float[Tensor, "Q N N2"]:
        """The same, unchecked, with a lengthscale and a variance of any type."""
        ell = lengthscale[:, None]
        differences = (x / ell)[:, :, None, :] - (x2 / ell)[:, None, :, :]
        correlation = self.kernel.correlation(differences.square().sum(-1))
        return variance[:, None, None] * correlation

    def draw(
        self, num_samples: int, num_basis: int, generator: torch.Generator | None = None
    ) -> ForcePath:
        """`num_samples` functions, each from its own basis of `num_basis` waves."""
        check_count("num_samples", num_samples)
        check_count("num_basis", num_basis)
        ell = self.lengthscale
        shape = (num_samples, ell.shape[0], num_basis)
        theta = normal((*shape, ell.shape[1]), generator, ell) / ell[:, None]
        scales = self.kernel.spectral_scales((*shape, 1), generator, ell)
        theta = theta if scales is None else theta * scales
        phase = 2 * math.pi * uniform(shape, generator, ell)
        scale = torch.sqrt(2 * self.variance / num_basis)
        amplitude = scale[:, None] * normal(shape, generator, ell)
        return ForcePath(
            theta=theta,
            phase=phase,
            amplitude=amplitude,
            centers=ell.new_zeros(ell.shape[0], 0, ell.shape[1]),
            lengthscale=ell,
            coefficients=ell.new_zeros(num_samples, ell.shape[0], 0),
            mixture=self.kernel.mixture(),
        )

    def checked(self, name: str, x: Tensor) -> Tensor:
        """`x` [N, P] or [Q, N, P], of the right type, finite; or an error."""
        num_forces, num_inputs = self.lengthscale.shape
        as_tensors({name: x, "lengthscale": self.lengthscale[0, 0]})
        expected = (num_forces, "N", num_inputs) if x.ndim == 3 else ("N", num_inputs)
        check_shape(name, x, expected, "Add the input dimension with x[:, None].")
        check_finite(name, x, "Remove those rows.")
        return x
