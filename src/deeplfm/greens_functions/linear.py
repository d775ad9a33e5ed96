"""Any order: y^(n) + c_{n-1} y^(n-1) + … + c_0 y = u; and order 0, no dynamics, G = δ.

The polynomial is held as quadratic factors p² + c1 p + c0 and, for odd order, one linear factor.
Each number keeps its sign while it is learnt, so a stable ODE stays stable.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions.base import GreensFunction
from deeplfm.greens_functions.factors import Factor, Linear, Quadratic
from deeplfm.registry import register


@register
@final
class LinearODE(GreensFunction):
    """A linear ODE of any order n, y^(n) + c_{n-1} y^(n-1) + … + c_0 y = u.

    Learning moves the factors of its polynomial, and never across the border of stability. An ODE
    that is not stable works with zero memory.

    Args:
        coefficients: [c_0, …, c_{n-1}], lowest first, as numbers or as a tensor [n] or [D, P, n];
            the unit of c_k is 1/time^(n-k).
        normalised: True divides G by its integral, so that a constant force passes unchanged; it
            needs a stable ODE.
        learn: False fixes the coefficients.

    Shapes:
        t: a number or a tensor that broadcasts against the parameters, () or [D, P].
        G(t): the broadcast shape of `t` and the parameters; it is 0 for t < 0.

    Example:
        >>> ode = dlfm.LinearODE([6.0, 11.0, 6.0])  # (p + 1)(p + 2)(p + 3)
        >>> ode.order, ode.stable
        (3, True)
        >>> sorted(round(pole, 4) for pole in ode.poles().real.tolist())
        [1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        coefficients: Sequence[float] | Tensor,
        *,
        normalised: bool = False,
        learn: bool = True,
    ) -> None:
        rows = _as_rows(coefficients)
        quantities = _factor_quantities(rows)
        stable = all(bool((value > 0).all()) for value in quantities.values())
        if normalised and not stable:
            raise InputError(
                "normalised needs a stable ODE (∫G is infinite otherwise); got coefficients "
                f"{rows.tolist()}. Use normalised=False."
            )
        super().__init__(
            quantities, normalised=normalised, learn=learn, bounds=None, positive=False
        )
        self._pairs, self._single = rows.shape[-1] // 2, rows.shape[-1] % 2 == 1

    @property
    def stable(self) -> bool:
        # Signs never change in learning, but they come with a loaded state.
        return all(bool((self.value(name) > 0).all()) for name in self.quantities)

    @property
    def factors(self) -> tuple[Factor, ...]:
        found: list[Factor] = [Linear(self.value("rate"))] if self._single else []
        for k in range(self._pairs):
            half, product = self.value(f"slope_{k}") / 2, self.value(f"product_{k}")
            found.append(Quadratic(half, half**2 - product, product))
        return tuple(found)

    def arguments(self) -> dict[str, Any]:
        learn = any(True for _ in self.parameters())
        return {
            "coefficients": self.coefficients.detach(),
            "normalised": self.normalised,
            "learn": learn,
        }

    def inverse_times(self, name: str) -> int:
        return 2 if name.startswith("product") else 1

    @property
    def coefficients(self) -> Tensor:
        """c_0 … c_{n-1} [..., n] as they are now."""
        return torch.stack(self.polynomial()[:-1], dim=-1)


@register
@final
class NoDynamics(GreensFunction):
    """The ODE of order 0, y = u: its Green's function is G = δ.

    The output is the force itself, and the layer is an ordinary GP layer.

    Args:
        None: it has no parameters.

    Example:
        >>> dlfm.NoDynamics().order
        0
        >>> recipe = dlfm.FourierDLFM(greens_function=dlfm.NoDynamics())
    """

    def __init__(self) -> None:
        super().__init__({}, normalised=False, learn=False, bounds=None)

    def arguments(self) -> dict[str, Any]:
        return {}

    @property
    def stable(self) -> bool:
        return True

    @property
    def factors(self) -> tuple[Factor, ...]:
        return ()


def _as_rows(coefficients: Sequence[float] | Tensor) -> Tensor:
    if isinstance(coefficients, Tensor):
        rows = coefficients.detach()
    else:
        try:
            rows = torch.tensor([float(value) for value in coefficients], dtype=torch.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"coefficients must be numbers [c_0, …, c_{{n-1}}]; got {coefficients!r}. "
                "Pass a flat list, or a tensor [D, P, n]."
            ) from None
    if rows.ndim not in (1, 3) or rows.shape[-1] == 0 or not rows.is_floating_point():
        raise InputError(
            "coefficients must be numbers [c_0, …, c_{n-1}] or a real tensor [n] or [D, P, n]; got "
            f"{tuple(rows.shape)} {rows.dtype}. Use NoDynamics() for order 0."
        )
    if not bool(rows.isfinite().all()):
        raise InputError(f"coefficients must be finite; got {rows.tolist()}. Replace NaN and inf.")
    return rows


def _factor_quantities(rows: Tensor) -> dict[str, Tensor]:
    """The numbers of the factors, named: rate; slope_k, product_k of p² + slope p + product."""
    table = [_real_factors(row) for row in rows.double().reshape(-1, rows.shape[-1]).numpy()]
    named: dict[str, Tensor] = {}
    for name in table[0]:
        column = torch.tensor([entry[name] for entry in table], dtype=rows.dtype)
        named[name] = column.reshape(rows.shape[:-1])
    return named


def _real_factors(coefficients: np.ndarray) -> dict[str, float]:
    """Real factors of one polynomial, of the same number whatever its roots are."""
    if len(coefficients) == 1:
        return {"rate": float(coefficients[0])}
    if len(coefficients) == 2:
        return {"slope_0": float(coefficients[1]), "product_0": float(coefficients[0])}
    # A trailing zero coefficient is a root at exactly 0; numpy strips it before its eigenvalues.
    roots = np.roots([1.0, *coefficients[::-1]])
    real = sorted(float(root.real) for root in roots if root.imag == 0)
    found: dict[str, float] = {}
    if len(real) % 2:
        found["rate"] = -real.pop(0)
    pairs = [complex(root) for root in roots if root.imag > 0]
    # A root within rounding of the imaginary axis is taken to lie on it.
    factors = [
        (-2 * root.real if abs(root.real) > 1e-12 * abs(root) else 0.0, abs(root) ** 2)
        for root in pairs
    ]
    factors += [(-(a + b), a * b) for a, b in zip(real[::2], real[1::2], strict=True)]
    for k, (slope, product) in enumerate(factors):
        found[f"slope_{k}"], found[f"product_{k}"] = slope + 0.0, product + 0.0
    return found
