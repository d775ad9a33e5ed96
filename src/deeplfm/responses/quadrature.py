"""The slow truth: y(x) = ∫ G(x - τ) u(τ) dτ for any Green's function and any force, by brute force.

Composite Gauss–Legendre in float64, the panels halved until the answer settles. It knows no closed
form: what it needs of the ODE is G(t), and of the force its values.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError, NumericalError
from deeplfm.greens_functions import Dynamics
from deeplfm.shapes import Memory, as_tensors, check_finite, check_shape

Force = Callable[[Tensor], Tensor]  # values at times of any shape, elementwise

_NODES_PER_PANEL = 16
_FIRST_PANELS, _LAST_PANELS = 8, 2**17
_PANELS_AT_ONCE = 2**13  # bounds the memory of one evaluation of the force
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
    greens_function: Dynamics,
    force: Force,
    x: Tensor,
    memory: Memory = "infinite",
    *,
    tolerance: float = 1e-11,
    horizon: float | None = None,
    scale: float | None = None,
) -> Tensor:
    """y(x) for `x` [N]; the result is [N, *shape of the parameters], float64 or complex128.

    `force` maps float64 times of any shape to values of that shape. Infinite memory is cut off at
    `horizon`, by default 40 time constants. Panels are halved until two steps in a row change
    nothing beyond `tolerance`, relative to the largest |y|, or a `NumericalError` is raised. A
    feature of the force much narrower than the time it acts over can still be missed: give its
    width as `scale`, and the first panels are that short.
    """
    greens_function.check_memory(memory)
    as_tensors({"x": x})
    check_shape("x", x, ("N",), "Flatten it first.")
    check_finite("x", x, "Remove those.")
    for name, option in (("horizon", horizon), ("scale", scale)):
        if option is not None and not option > 0:
            raise InputError(f"{name} must be above 0; got {option:g}. Leave it out, or raise it.")
    if len(x) == 0:
        return x.new_zeros(0, *greens_function.poles().shape[:-1])
    x = x.detach().double()
    if greens_function.order == 0:
        return force(x)
    greens_function = greens_function.fixed().to(torch.float64)
    span = x
    if memory == "zero" and bool((x < 0).any()):
        raise InputError(
            f"x must be 0 or above with zero memory; got {x.min().item():g}. Shift the origin."
        )
    if memory == "infinite":
        slowest = greens_function.poles().detach().real.min().item()
        span = torch.full_like(x, _HORIZON / slowest if horizon is None else horizon)
    panels, previous, agreements = _FIRST_PANELS, None, 0
    if scale is not None:
        panels = max(panels, math.ceil(float(span.max()) / scale))
    while panels <= _LAST_PANELS:
        value = _composite(greens_function, force, x, span, panels)
        if previous is not None:
            agreements = agreements + 1 if _settled(value, previous, tolerance) else 0
        if agreements == 2:
            return value
        panels, previous = 2 * panels, value
    if previous is not None and not bool(previous.any()):
        return previous  # a force that is 0 wherever it was looked at
    raise NumericalError(
        f"quadrature must settle to {tolerance:g} within {_LAST_PANELS} panels; it did not. "
        "Pass a shorter horizon, a smoother force or a larger tolerance."
    )


def _composite(
    greens_function: Dynamics, force: Force, x: Tensor, span: Tensor, panels: int
) -> Tensor:
    """∫_0^span G(v) u(x - v) dv for each x."""
    nodes, weights = gauss_legendre(panels)
    shape = tuple(greens_function.poles().shape[:-1])
    size = _PANELS_AT_ONCE * _NODES_PER_PANEL
    rows = []
    with torch.no_grad():
        for point, length in zip(x.tolist(), span.tolist(), strict=True):
            total = torch.zeros((), dtype=torch.float64)
            for some, share in zip(nodes.split(size), weights.split(size), strict=True):
                lag = some * length
                kernel = greens_function.impulse_response(lag.reshape(-1, *([1] * len(shape))))
                values = (share * length * force(point - lag))[None, :]
                total = total + (values @ kernel.reshape(len(lag), -1).to(values.dtype))[0]
            rows.append(total)
    return torch.stack(rows).reshape(len(rows), *shape)


def _settled(value: Tensor, previous: Tensor, tolerance: float) -> bool:
    largest = value.abs().max()
    return bool(largest > 0) and bool((value - previous).abs().max() <= tolerance * largest)
