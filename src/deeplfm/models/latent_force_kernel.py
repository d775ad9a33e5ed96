"""The exact covariance of a shallow latent force model, the oracle of every layer.

    f_d(x) = Σ_q a_{dq} ∫ G_d(x - τ) u_q(τ) dτ,   u_q ~ GP(0, exp(-½ Σ_p (τ_p-τ'_p)²/ℓ_{qp}²))

A kernel in its own right: parameters, several outputs and forces; the integrals are in
`responses/covariances.py`. Computed in float64 whatever the type of its parameters.
"""

from collections.abc import Sequence
from typing import Any, cast, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from deeplfm.errors import InputError
from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.covariances import force_covariance, output_covariance
from deeplfm.shapes import Memory, as_tensors, check_finite, check_shape
from deeplfm.variational.parameters import Quantity, in_type_of


@final
class LatentForceKernel(nn.Module):
    """The exact covariance of D outputs, each a linear ODE driven by Q shared latent forces.

        f_d(x) = Σ_q a_{dq} ∫ G_d(x - τ) u_q(τ) dτ,   u_q ~ GP(0, exp(-½ Σ_p (τ_p-τ'_p)²/ℓ_{qp}²))

    Args:
        greens_functions: one with parameters () or [D, P], or a list of one per output.
        lengthscale: ℓ of the forces in the units of the inputs, a number or a tensor [Q, P].
        sensitivities: a_{dq} [D, Q]; one force and 1 for every output if they are not given.
        memory: where the convolution starts, "infinite" (at -∞) or "zero" (at 0).
        learn: False fixes every parameter.

    Shapes:
        x, x2: inputs, tensors [N, P] and [N2, P]; x2 is x if it is not given.
        kernel(x, x2): [D, D, N, N2]; `matrix(x, x2)` is the same as one matrix [D·N, D·N2].

    Example:
        >>> odes = [dlfm.FirstOrder(1.0), dlfm.SecondOrder(0.3, 5.0)]
        >>> kernel = dlfm.LatentForceKernel(odes, lengthscale=0.5, sensitivities=[[1.0], [2.0]])
        >>> x = torch.linspace(0, 1, 4, dtype=torch.float64)[:, None]
        >>> kernel(x).shape, kernel.matrix(x).shape
        (torch.Size([2, 2, 4, 4]), torch.Size([8, 8]))
    """

    def __init__(
        self,
        greens_functions: GreensFunction | Sequence[GreensFunction],
        *,
        lengthscale: Tensor | float = 1.0,
        sensitivities: Tensor | Sequence[Sequence[float]] | None = None,
        memory: Memory = "infinite",
        learn: bool = True,
    ) -> None:
        super().__init__()
        self.memory: Memory = memory
        systems = _as_list(greens_functions)
        known = [one.poles().real for one in systems if one.order > 0]
        ell = Quantity("lengthscale", in_type_of(lengthscale, known), learn=learn)
        if ell.start.ndim not in (0, 2):
            raise InputError(
                f"lengthscale must be a number or [Q, P]; got {tuple(ell.start.shape)}. "
                "Add the missing dimension with [:, None]."
            )
        single = isinstance(greens_functions, GreensFunction)
        weights = _sensitivities(systems, single, sensitivities, ell.start)
        outputs, forces = weights.shape
        inputs = _num_inputs(systems, ell)
        if tuple(ell.start.shape) not in ((), (forces, inputs)):
            raise InputError(
                f"lengthscale must be a number or [{forces}, {inputs}] as the sensitivities and "
                f"Green's functions have it; got {tuple(ell.start.shape)}. Make the shapes agree."
            )
        self.quantities = nn.ModuleDict({"lengthscale": ell.tiled(forces, inputs)})
        self.sensitivities = nn.Parameter(weights, requires_grad=learn)
        rows = outputs if single else 1
        self.greens_functions = nn.ModuleList(one.tiled(rows, inputs) for one in systems)
        for system in self._systems():
            system.check_memory(memory)
            system.requires_grad_(learn)
        reals = {f"Green's function {k}": real for k, real in enumerate(known)}
        as_tensors({"lengthscale": ell.start.sum()} | {n: r.sum() for n, r in reals.items()})

    @property
    def lengthscale(self) -> Float[Tensor, "Q P"]:
        """ℓ."""
        value: Tensor = self.quantities["lengthscale"]()
        return value

    def forward(
        self, x: Float[Tensor, "N P"], x2: Float[Tensor, "N2 P"] | None = None
    ) -> Float[Tensor, "D D N N2"]:
        """cov(f_d(x), f_d'(x2)) for every pair of outputs."""
        x = self._inputs("x", x)
        x2 = x if x2 is None else self._inputs("x2", x2)
        return self._in_double("outputs", x, x2)

    def force_covariance(
        self, x: Float[Tensor, "N P"], z: Float[Tensor, "M P"]
    ) -> Float[Tensor, "D Q N M"]:
        """cov(f_d(x), u_q(z))."""
        return self._in_double("forces", self._inputs("x", x), self._inputs("z", z))

    def matrix(self, x: Float[Tensor, "N P"], x2: Float[Tensor, "N2 P"] | None = None) -> Tensor:
        """The joint covariance [D·N, D·N2], outputs outermost; symmetric for x2 = x."""
        blocks = self.forward(x, x2)
        outputs, _, rows, columns = blocks.shape
        return blocks.permute(0, 2, 1, 3).reshape(outputs * rows, outputs * columns)

    def _in_double(self, kind: str, x: Tensor, x2: Tensor) -> Tensor:
        """The covariance in float64, with gradients to the parameters as they are."""
        double = _Evaluate(self, kind)
        names = {name: value.double() for name, value in double.named_parameters()}
        names |= {name: value.double() for name, value in double.named_buffers()}
        result: Tensor = functional_call(double, names, (x.double(), x2.double()))
        return result.to(x.dtype)

    def _systems(self) -> list[GreensFunction]:
        return cast(list[GreensFunction], list(self.greens_functions))  # a ModuleList forgets it

    def _inputs(self, name: str, x: Tensor) -> Tensor:
        ell = self.lengthscale
        as_tensors({name: x, "lengthscale": ell[0, 0]})
        check_shape(name, x, ("N", ell.shape[1]), "Add the input dimension with x[:, None].")
        check_finite(name, x, "Remove those rows.")
        return x


@final
class _Evaluate(nn.Module):
    """A kernel as a function of its parameters, whose type `functional_call` may replace."""

    def __init__(self, kernel: LatentForceKernel, kind: str) -> None:
        super().__init__()
        self.kernel, self.kind = kernel, kind

    def forward(self, x: Tensor, x2: Tensor) -> Tensor:
        kernel: Any = self.kernel
        ell, a, memory = kernel.lengthscale, kernel.sensitivities, kernel.memory
        systems = kernel._systems()
        if self.kind == "forces":
            rows = [force_covariance(g, x, x2, ell, memory) for g in systems]
            return torch.einsum("dq,dqnm->dqnm", a, torch.cat(rows))
        rows = [
            torch.cat([output_covariance(g, g2, x, x2, ell, memory) for g2 in systems], dim=1)
            for g in systems
        ]
        return torch.einsum("deqnm,dq,eq->denm", torch.cat(rows, dim=0), a, a)


def _as_list(
    greens_functions: GreensFunction | Sequence[GreensFunction],
) -> list[GreensFunction]:
    found = (
        [greens_functions]
        if isinstance(greens_functions, GreensFunction)
        else list(greens_functions)
    )
    if not found or not all(isinstance(one, GreensFunction) for one in found):
        raise InputError(
            "greens_functions must be one Green's function or a list of them; got "
            f"{greens_functions!r}. Pass FirstOrder(), say, or one per output."
        )
    return found


def _sensitivities(
    systems: list[GreensFunction],
    single: bool,
    sensitivities: Tensor | Sequence[Sequence[float]] | None,
    like: Tensor,
) -> Tensor:
    outputs: int | None = len(systems)
    if single:
        shape = systems[0].poles().shape[:-1]
        outputs = shape[0] if len(shape) == 2 and shape[0] > 1 else None
    if sensitivities is None:
        return torch.ones(outputs or 1, 1, dtype=like.dtype)
    try:
        weights = torch.as_tensor(sensitivities)
    except (TypeError, ValueError):
        raise InputError(
            f"sensitivities must be [D, Q] numbers; got {sensitivities!r}. One row per output."
        ) from None
    check_shape("sensitivities", weights, (outputs or "D", "Q"), "One row per output.")
    check_finite("sensitivities", weights, "Replace them.")
    return weights.detach().to(like.dtype).clone()


def _num_inputs(systems: list[GreensFunction], ell: Quantity) -> int:
    if ell.start.ndim == 2:
        return int(ell.start.shape[1])
    shapes = [one.poles().shape[:-1] for one in systems]
    return max((int(shape[-1]) for shape in shapes if len(shape) == 2), default=1)
