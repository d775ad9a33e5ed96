"""The covariance of two ODEs driven by one squared-exponential force, and of an ODE and its force.

    k(x, x') = ∫∫ G(x - τ) G'(x' - τ') exp(-(τ-τ')²/(2ℓ²)) dτ dτ',   several inputs multiply

Closed form in the poles: decaying exponentials s, s' give, infinite memory, (B_s(x-x') +
B_{s'}(x'-x)) / (s + s'), B the bump response. With zero memory that form subtracts what the past
would have added; where little is left (short times, slow or unstable poles) one integral is summed.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import NumericalError
from deeplfm.greens_functions import Dynamics
from deeplfm.greens_functions.pole_functions import ImpulseResponse
from deeplfm.responses.bumps import bump_response
from deeplfm.responses.quadrature import gauss_legendre
from deeplfm.responses.systems import system_bump_response
from deeplfm.shapes import Memory

_CHUNK_ELEMENTS = 2**20  # of one evaluation, where there are many nodes
_LAST_PANELS = 2**14
# Below this |s| min(x, x') the closed form of zero memory is left: it loses the (2n-1)-th power of
# it, n the order, so that ten digits remain at the border.
_SHORT = {1: 1e-3, 2: 0.5}
_SHORT_OTHERWISE = 2.0


def force_covariance(
    g: Dynamics,
    x: Float[Tensor, "N P"],
    z: Float[Tensor, "M P"],
    ell: Float[Tensor, "Q P"],
    memory: Memory,
) -> Float[Tensor, "D Q N M"]:
    """cov(f_d(x), u_q(z)) at unit sensitivity."""
    t, center = x.mT[:, None, :, None], z.mT[:, None, None, :]
    response = system_bump_response(g, t, center, ell.mT[:, :, None, None], memory, trailing=3)
    response = response if response.ndim == 5 else response[None]  # G = δ has no outputs of its own
    return response.prod(1)


def output_covariance(
    g: Dynamics,
    g2: Dynamics,
    x: Float[Tensor, "N P"],
    x2: Float[Tensor, "N2 P"],
    ell: Float[Tensor, "Q P"],
    memory: Memory,
) -> Float[Tensor, "D D2 Q N N2"]:
    """The covariance of the outputs of two Green's functions, force by force."""
    if g2.order == 0:
        return force_covariance(g, x, x2, ell, memory)[:, None]
    if g.order == 0:
        return force_covariance(g2, x2, x, ell, memory)[None].mT
    # Dimensions from here: D D2 P Q N N2, the product over P last.
    t, t2 = x.mT[:, None, :, None], x2.mT[:, None, None, :]
    rows, columns = _short_pairs(g, g2, x, x2, memory)
    if len(rows) and len(rows) == len(x) * len(x2):
        pairs = _by_quadrature(g, g2, x.mT[:, rows], x2.mT[:, columns], ell)
        return pairs.reshape(*pairs.shape[:-1], len(x), len(x2)).prod(2)
    scale = ell.mT[:, :, None, None]
    first = _half(g, g2, t, t2, scale, memory)
    second = _half(g2, g, t2, t, scale, memory).transpose(0, 1)
    total = first + second
    if len(rows):
        exact = _by_quadrature(g, g2, x.mT[:, rows], x2.mT[:, columns], ell)
        flat = rows * len(x2) + columns
        total = total.flatten(-2).index_copy(-1, flat, exact).reshape(total.shape)
    return total.prod(2)


def _short_pairs(
    g: Dynamics, g2: Dynamics, x: Tensor, x2: Tensor, memory: Memory
) -> tuple[Tensor, Tensor]:
    """Rows and columns of the pairs for which the closed form of zero memory cancels."""
    nowhere = torch.zeros(0, dtype=torch.long, device=x.device)
    if memory == "infinite":
        return nowhere, nowhere
    with torch.no_grad():
        least = torch.minimum(x.abs()[:, None], x2.abs()[None])  # N N2 P
        slowest = min(one.poles().abs().min().item() for one in (g, g2))
        border = _SHORT.get(max(g.order, g2.order), _SHORT_OTHERWISE)
        short = (slowest * least < border).any(-1)
        if not (g.stable and g2.stable):
            short = torch.ones_like(short)
        rows, columns = short.nonzero(as_tuple=True)
    return rows, columns


def _half(
    g: Dynamics, g2: Dynamics, t: Tensor, t2: Tensor, scale: Tensor, memory: Memory
) -> Tensor:
    """Σ_k w_k B_{s_k} H_2(s_k) over the exponentials of `g`; the other half swaps the two.

    With zero memory B starts at 0 and what the past of `g2` would have added is taken off:
    Σ_k w_k ( B_{s_k}(t; t2) H_2(s_k) - B_{s_k}(t; 0) Σ_l w'_l e^{-s'_l t2} / (s_k + s'_l) ).
    """
    nodes, weights = (part[:, None] for part in g.exponentials())  # [D, 1, P, K]
    seen = (weights * g2.transfer(nodes))[..., None, None, None, :]  # [D, D2, P, 1, 1, 1, K]
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
    weights, nodes = (part.movedim(-1, 0) for part in (weights, nodes[..., None, None, None, :]))
    total = (weights[0] * response(nodes[0])).real
    chunk = max(1, _CHUNK_ELEMENTS // max(1, total.numel()))
    for some, at in zip(weights[1:].split(chunk), nodes[1:].split(chunk), strict=True):
        total = total + (some * response(at)).real.sum(0)
    return total


def _by_quadrature(g: Dynamics, g2: Dynamics, t: Tensor, t2: Tensor, ell: Tensor) -> Tensor:
    """[D, D2, P, Q, pairs] for t, t2 [P, pairs], zero memory: the inner integral in closed form."""
    scale = ell.mT[:, :, None]
    nodes, weights = (part.to(t) for part in gauss_legendre(_panels(g2, t2, ell)))
    total = torch.zeros((), dtype=t.dtype, device=t.device)
    chunk = max(1, _CHUNK_ELEMENTS // max(1, (t[:, None] * scale).numel()))
    for some, share in zip(nodes.split(chunk), weights.split(chunk), strict=True):
        lag = t2[:, None] * some[:, None, None, None]  # [chunk, P, 1, pairs]
        center = (t2[:, None] - lag)[:, None]
        inner = system_bump_response(g, t[:, None], center, scale, "zero", trailing=2)
        outer = g2.respond(ImpulseResponse(lag[:, None]), trailing=2)[..., 0, :]
        outer = outer * t2 * share[:, None, None, None]
        total = total + torch.einsum("kdpqm,kepm->depqm", inner, outer)
    return total


def _panels(g2: Dynamics, t2: Tensor, ell: Tensor) -> int:
    """Enough for 16 nodes each to reach rounding: two lengthscales, two fastest time constants."""
    with torch.no_grad():
        fastest = g2.poles().abs().max().item()
        features = t2.abs().max().item() * (fastest + 1 / ell.min().item())
    panels = math.ceil(features / 2) + 1
    if not panels <= _LAST_PANELS:
        raise NumericalError(
            f"a zero-memory covariance must be summed over {_LAST_PANELS} panels at most; this one "
            f"needs {panels} (x over the lengthscale and the fastest time constant). "
            "Use infinite memory, or inputs closer to the origin."
        )
    return panels
