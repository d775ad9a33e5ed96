"""The slow truth: y(x) = ∫ G(x - τ) u(τ) dτ for any Green's function and any force, by brute force.

Composite Gauss–Legendre in float64, the panels halved until the answer settles. It knows no closed
form: what it needs of the ODE is G(t), and of the force its values.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError, NumericalError
from deeplfm.greens_functions import GreensFunction
from deeplfm.shapes import Memory, check_finite, check_memory

Force = Callable[[Tensor], Tensor]  # values at times of any shape, elementwise

_NODES_PER_PANEL = 16
_FIRST_PANELS, _LAST_PANELS = 8, 2**15
_HORIZON = 40.0  # time constants of the slowest pole: e^{-40} is far below rounding


def gauss_legendre(panels: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights on (0, 1), `panels` panels of 16 nodes each, float64."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
    starts = torch.arange(panels, dtype=torch.float64)[:, None]
    inside = torch.tensor((nodes + 1) / 2)[None, :]
    return ((starts + inside) / panels).reshape(-1), torch.tensor(weights / 2).repeat(
        panels
    ) / panels


def quadrature(
    greens_function: GreensFunction,
    force: Force,
    x: Tensor,
    memory: Memory = "infinite",
    *,
    tolerance: float = 1e-11,
    horizon: float | None = None,
) -> Tensor:
    """y(x) for `x` [N]; the result is [N, *shape of the parameters], float64 or complex128.

    `force` maps float64 times of any shape to values of that shape. Infinite memory is cut off at
    `horizon`, by default 40 time constants. Relative to the largest |y|, `tolerance` is reached or
    a `NumericalError` is raised.
    """
    greens_function.check_memory(check_memory(memory))
    if x.ndim != 1:
        raise InputError(f"x must be [N]; got {tuple(x.shape)}. Flatten it first.")
    check_finite("x", x)
    x = x.detach().double()
    if greens_function.order == 0:
        return force(x)
    greens_function = copy.deepcopy(greens_function).double()
    span = x
    if memory == "zero" and bool((x < 0).any()):
        raise InputError(
            f"x must be 0 or above with zero memory; got {x.min().item():g}. Shift the origin."
        )
    if memory == "infinite":
        slowest = greens_function.poles().detach().real.min().item()
        span = torch.full_like(x, _HORIZON / slowest if horizon is None else horizon)
    panels, previous = _FIRST_PANELS, None
    while panels <= _LAST_PANELS:
        value = _composite(greens_function, force, x, span, panels)
        if previous is not None and _settled(value, previous, tolerance):
            return value
        panels, previous = 2 * panels, value
    raise NumericalError(
        f"quadrature must settle to {tolerance:g} within {_LAST_PANELS} panels; it did not. "
        "Pass a shorter horizon, a smoother force or a larger tolerance."
    )


def _composite(
    greens_function: GreensFunction, force: Force, x: Tensor, span: Tensor, panels: int
) -> Tensor:
    """∫_0^span G(v) u(x - v) dv for each x."""
    nodes, weights = gauss_legendre(panels)
    shape = tuple(greens_function.poles().shape[:-1])
    rows = []
    with torch.no_grad():
        for point, length in zip(x.tolist(), span.tolist(), strict=True):
            lag = nodes * length
            kernel = greens_function(lag.reshape(-1, *([1] * len(shape))))
            values = (weights * length * force(point - lag))[None, :]
            rows.append((values @ kernel.reshape(len(lag), -1).to(values.dtype))[0])
    return torch.stack(rows).reshape(len(rows), *shape)


def _settled(value: Tensor, previous: Tensor, tolerance: float) -> bool:
    return bool((value - previous).abs().max() <= tolerance * value.abs().max())
