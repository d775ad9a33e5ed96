"""The exact covariance of a shallow latent force model, the oracle of every layer.

    f_d(x) = Σ_q a_{dq} ∫ G_d(x - τ) u_q(τ) dτ,   u_q ~ GP(0, exp(-½ Σ_p (τ_p-τ'_p)²/ℓ_{qp}²))

Closed form in the poles: two decaying exponentials s, s' under an EQ force give, infinite memory,
(B_s(x-x') + B_{s'}(x'-x)) / (s + s'), B the bump response. Several inputs multiply.
"""

from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.greens_functions import GreensFunction
from deeplfm.greens_functions.pole_functions import ImpulseResponse
from deeplfm.parameters import Quantity
from deeplfm.responses.bumps import bump_response
from deeplfm.responses.quadrature import gauss_legendre
from deeplfm.responses.systems import system_bump_response
from deeplfm.shapes import Memory, as_tensors, check_finite, check_memory, check_shape

_CHUNK_ELEMENTS = 2**20  # of one evaluation, when a Green's function has many nodes
_PANELS = 32  # of 16 nodes, for the outer integral where no closed form exists


@final
class LatentForceKernel(nn.Module):
    """The covariance of D outputs, each a linear ODE driven by Q shared latent forces.

    greens_functions: one with parameters () or [D, P], or a list of one per output.
    lengthscale:      of the forces, a number or [Q, P].
    sensitivities:    a_{dq} [D, Q]; one force and 1 for every output if not given.
    memory:           where the convolution starts, "infinite" or "zero".
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
        self.memory = check_memory(memory)
        ell = Quantity("lengthscale", lengthscale, learn=learn)
        if ell.start.ndim not in (0, 2):
            raise InputError(
                f"lengthscale must be a number or [Q, P]; got {tuple(ell.start.shape)}. "
                "Add the missing dimension with [:, None]."
            )
        weights = _sensitivities(greens_functions, sensitivities, ell.start.dtype)
        outputs, forces = weights.shape
        inputs = _num_inputs(greens_functions, ell)
        ell_shape = tuple(ell.start.shape)
        if ell_shape not in ((), (forces, inputs)):
            raise InputError(
                f"lengthscale must be a number or [{forces}, {inputs}] as the sensitivities and "
                f"Green's functions have it; got {ell_shape}. Make the shapes agree."
            )
        self.lengthscale = ell.tiled(forces, inputs)
        self.sensitivities = nn.Parameter(weights, requires_grad=learn)
        if isinstance(greens_functions, GreensFunction):
            blocks = [greens_functions.tiled(outputs, inputs)]
        else:
            blocks = [one.tiled(1, inputs) for one in greens_functions]
        for block in blocks:
            block.check_memory(memory)
        self.blocks = nn.ModuleList(blocks)

    def forward(
        self, x: Float[Tensor, "N P"], x2: Float[Tensor, "N2 P"] | None = None
    ) -> Float[Tensor, "D D N N2"]:
        """cov(f_d(x), f_d'(x2)) for every pair of outputs."""
        x = self._inputs("x", x)
        x2 = x if x2 is None else self._inputs("x2", x2)
        ell = self.lengthscale()
        rows = [
            torch.cat([_block(g, g2, x, x2, ell, self.memory) for g2 in self._systems()], dim=1)
            for g in self._systems()
        ]
        per_force = torch.cat(rows, dim=0)  # [D, D, Q, N, N2]
        a = self.sensitivities
        return torch.einsum("deqnm,dq,eq->denm", per_force, a, a)

    def force_covariance(
        self, x: Float[Tensor, "N P"], z: Float[Tensor, "M P"]
    ) -> Float[Tensor, "D Q N M"]:
        """cov(f_d(x), u_q(z))."""
        x, z = self._inputs("x", x), self._inputs("z", z)
        ell = self.lengthscale()
        rows = [_force_block(g, x, z, ell, self.memory) for g in self._systems()]
        return self.sensitivities[:, :, None, None] * torch.cat(rows)

    def matrix(self, x: Float[Tensor, "N P"], x2: Float[Tensor, "N2 P"] | None = None) -> Tensor:
        """The joint covariance [D·N, D·N2], outputs outermost; symmetric for x2 = x."""
        blocks = self.forward(x, x2)
        outputs, _, rows, columns = blocks.shape
        return blocks.permute(0, 2, 1, 3).reshape(outputs * rows, outputs * columns)

    def _systems(self) -> list[GreensFunction]:
        return [block for block in self.blocks if isinstance(block, GreensFunction)]

    def _inputs(self, name: str, x: Tensor) -> Tensor:
        ell = self.lengthscale()
        as_tensors({name: x, "lengthscale": ell[0, 0]})
        check_shape(name, x, ("N", ell.shape[1]), "Add the input dimension with x[:, None].")
        check_finite(name, x)
        return x


def _block(
    g: GreensFunction, g2: GreensFunction, x: Tensor, x2: Tensor, ell: Tensor, memory: Memory
) -> Tensor:
    """The covariance of two Green's functions, unit sensitivities [D, D2, Q, N, N2]."""
    if g2.order == 0:
        return _force_block(g, x, x2, ell, memory)[:, None]
    if g.order == 0:
        return _force_block(g2, x2, x, ell, memory)[None].mT
    # Dimensions from here: D D2 P Q N N2, the product over P last.
    t, t2 = x.mT[:, None, :, None], x2.mT[:, None, None, :]
    scale = ell.mT[:, :, None, None]
    if not (g.stable and g2.stable):
        return _outer_quadrature(g, g2, t, t2, scale).prod(2)
    first = _half(g, g2, t, t2, scale, memory)
    second = _half(g2, g, t2, t, scale, memory).transpose(0, 1)
    return (first + second).prod(2)


def _half(
    g: GreensFunction, g2: GreensFunction, t: Tensor, t2: Tensor, scale: Tensor, memory: Memory
) -> Tensor:
    """Σ_k w_k B_{s_k} H_2(s_k) over the exponentials of `g`; the other half swaps the two.

    With zero memory B starts at 0 and what the past of `g2` would have added is taken off:
    Σ_k w_k ( B_{s_k}(t; t2) H_2(s_k) - B_{s_k}(t; 0) Σ_l w'_l e^{-s'_l t2} / (s_k + s'_l) ).
    """
    nodes, weights = (part[:, None] for part in g.exponentials())  # [D, 1, P, K]
    seen = weights * g2.transfer(nodes)  # [D, D2, P, K]
    if memory == "infinite":
        return _over_nodes(seen, nodes, lambda node: bump_response(t - t2, 0.0, scale, node))
    nodes2, weights2 = g2.exponentials()  # [D2, P, L]
    shares = weights[..., None] * weights2[..., None, :] / (nodes[..., None] + nodes2[..., None, :])
    decays = torch.exp(-nodes2[..., None, None, None, :] * t2[..., None])  # [D2, P, 1, N, N2, L]
    past = torch.einsum("depkl,epqnml->depqnmk", shares, decays)
    return _over_nodes(
        seen, nodes, lambda node: bump_response(t, t2, scale, node, "zero")
    ) - _over_nodes(past, nodes, lambda node: bump_response(t, 0.0, scale, node, "zero"))


def _over_nodes(weights: Tensor, nodes: Tensor, response: Callable[[Tensor], Tensor]) -> Tensor:
    """Re Σ_k weights_k response(s_k), nodes last in both, in chunks of bounded memory."""
    if weights.ndim == nodes.ndim:
        weights = weights[..., None, None, None, :]
    weights, nodes = (part.movedim(-1, 0) for part in (weights, nodes[..., None, None, None, :]))
    total = (weights[0] * response(nodes[0])).real
    chunk = max(1, _CHUNK_ELEMENTS // total.numel())
    for some, at in zip(weights[1:].split(chunk), nodes[1:].split(chunk), strict=True):
        total = total + (some * response(at)).real.sum(0)
    return total


def _outer_quadrature(
    g: GreensFunction, g2: GreensFunction, t: Tensor, t2: Tensor, scale: Tensor
) -> Tensor:
    """Zero memory, an unstable ODE: the inner integral in closed form, the outer summed."""
    nodes, weights = (part.to(t) for part in gauss_legendre(_PANELS))
    total = torch.zeros((), dtype=t.dtype, device=t.device)
    chunk = max(1, _CHUNK_ELEMENTS // (t * t2 * scale).numel())
    for some, share in zip(nodes.split(chunk), weights.split(chunk), strict=True):
        lag = t2 * some[:, None, None, None, None]  # [chunk, P, 1, 1, N2], as t2 is [P, 1, 1, N2]
        inner = system_bump_response(g, t, (t2 - lag)[:, None], scale, "zero", trailing=3)
        outer = g2.respond(ImpulseResponse(lag[:, None]), trailing=3)
        outer = outer * t2 * share[:, None, None, None, None, None]
        total = total + torch.einsum("kdpqnm,kepam->depqnm", inner, outer[..., 0, :])
    return total


def _force_block(g: GreensFunction, x: Tensor, z: Tensor, ell: Tensor, memory: Memory) -> Tensor:
    """cov(f_d(x), u_q(z)) at unit sensitivity [D, Q, N, M]."""
    t, center = x.mT[:, None, :, None], z.mT[:, None, None, :]
    response = system_bump_response(g, t, center, ell.mT[:, :, None, None], memory, trailing=3)
    response = response if response.ndim == 5 else response[None]  # G = δ has no outputs of its own
    return response.prod(1)


def _sensitivities(
    greens_functions: GreensFunction | Sequence[GreensFunction],
    sensitivities: Tensor | Sequence[Sequence[float]] | None,
    dtype: torch.dtype,
) -> Tensor:
    if isinstance(greens_functions, GreensFunction):
        shape = greens_functions.poles().shape[:-1]
        outputs = shape[0] if len(shape) == 2 and shape[0] > 1 else None
    else:
        outputs = len(greens_functions)
        if outputs == 0:
            raise InputError("greens_functions must hold one or more; got an empty list. Add one.")
    if sensitivities is None:
        return torch.ones(outputs or 1, 1, dtype=dtype)
    weights = torch.as_tensor(
        sensitivities, dtype=None if isinstance(sensitivities, Tensor) else dtype
    )
    check_shape("sensitivities", weights, (outputs or "D", "Q"), "One row per output.")
    check_finite("sensitivities", weights)
    return weights.detach().clone()


def _num_inputs(greens_functions: GreensFunction | Sequence[GreensFunction], ell: Quantity) -> int:
    if ell.start.ndim == 2:
        return int(ell.start.shape[1])
    several = (
        [greens_functions] if isinstance(greens_functions, GreensFunction) else greens_functions
    )
    shapes = [one.poles().shape[:-1] for one in several]
    return max((int(shape[-1]) for shape in shapes if len(shape) == 2), default=1)
