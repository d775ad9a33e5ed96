"""A physical or statistical quantity that can be learnt: a number that keeps its sign.

    value = start · e^{raw},  raw = 0 at first
    value = low · (high/low)^{sigmoid(raw)}  where it is bounded

Steps of an optimiser are relative changes, and the starting value is kept exactly.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import final

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.shapes import check_finite

Bounds = tuple[float, float]


@final
class Quantity(nn.Module):
    """A learnable quantity of any shape; calling it gives its value.

    `learn=False` fixes it. With `bounds=(low, high)` it stays between them, to rounding.
    `positive=False` admits zero and negative starts, which then keep their sign.
    """

    start: Tensor
    bounds: Tensor | None
    raw: Tensor | None

    def __init__(
        self,
        name: str,
        value: Tensor | float,
        *,
        learn: bool = True,
        bounds: Bounds | None = None,
        positive: bool = True,
    ) -> None:
        super().__init__()
        start = _as_real(name, value)
        if positive and not bool((start > 0).all()):
            raise InputError(
                f"{name} must be above 0; got {start.min().item():g}. Pass a positive {name}."
            )
        limits = _check_bounds(name, start, bounds)
        raw = torch.zeros_like(start)
        if limits is not None:
            low, high = limits.unbind()
            raw = torch.logit(torch.log(start / low) / torch.log(high / low))
        self.register_buffer("start", start)
        self.register_buffer("bounds", limits)
        self.raw = nn.Parameter(raw) if learn else None

    def forward(self) -> Tensor:
        if self.raw is None:
            return self.start
        if self.bounds is None:
            return self.start * torch.exp(self.raw)
        low, high = self.bounds.unbind()
        return low * (high / low) ** torch.sigmoid(self.raw)

    def set(self, value: Tensor) -> None:
        """Move to `value` without changing where it started, nor its bounds."""
        if self.raw is None:
            raise InputError("a quantity must be learnable to be set; got a fixed one. Build anew.")
        if self.bounds is None:
            raw = torch.log(value / self.start)
        else:
            low, high = self.bounds.unbind()
            raw = torch.logit(torch.log(value / low) / torch.log(high / low))
        if not bool(raw.isfinite().all()):
            raise InputError(
                "value must keep the sign of its quantity and lie within its bounds; got "
                f"{value.min().item():g} to {value.max().item():g}. Choose another."
            )
        with torch.no_grad():
            self.raw.copy_(raw)

    def tiled(self, *shape: int) -> "Quantity":
        """An independent copy broadcast to `shape`."""
        copy = Quantity("value", 1.0, learn=self.raw is not None)
        copy.register_buffer("bounds", None if self.bounds is None else self.bounds.clone())
        copy.register_buffer("start", self.start.expand(shape).clone())
        if self.raw is not None:
            copy.raw = nn.Parameter(self.raw.detach().expand(shape).clone())
        return copy

    def scaled(self, factor: Tensor) -> "Quantity":
        """An independent copy in other units: everything times `factor`, which has its shape."""
        copy = self.tiled(*factor.shape)
        copy.start.mul_(factor)
        if copy.bounds is not None:
            copy.bounds = copy.bounds[(..., *([None] * factor.ndim))] * factor
        return copy

    def extra_repr(self) -> str:
        value = self().detach()
        shown = f"{value.item():g}" if value.numel() == 1 else f"shape {tuple(value.shape)}"
        fixed = ", fixed" if self.raw is None else ""
        bounded = "" if self.bounds is None else f", in {self.bounds.tolist()}"
        return f"{shown}{fixed}{bounded}"


def in_type_of(value: Tensor | float, others: Iterable[object]) -> Tensor | float:
    """A Python number in the type of the first tensor among the others, if there is one."""
    if isinstance(value, (int, float)):
        for other in others:
            if isinstance(other, Tensor) and other.is_floating_point():
                return torch.tensor(float(value), dtype=other.dtype, device=other.device)
    return value


def learns(name: str, learn: bool | Collection[str]) -> bool:
    """Whether `name` is learnt, when `learn` is a bool for all or the names of those learnt."""
    return learn if isinstance(learn, bool) else name in _names(learn)


def _names(learn: Collection[str]) -> set[str]:
    return {learn} if isinstance(learn, str) else set(learn)


def check_names(
    names: Collection[str], learn: bool | Collection[str], bounds: Mapping[str, Bounds]
) -> None:
    """Every name in `learn` and `bounds` is a quantity of this object, or an error lists them."""
    chosen = set() if isinstance(learn, bool) else _names(learn)
    unknown = sorted((chosen | set(bounds)) - set(names))
    if unknown:
        raise InputError(
            f"learn and bounds must name quantities among {sorted(names)}; got {unknown}. "
            "Correct the name."
        )


def _as_real(name: str, value: Tensor | float) -> Tensor:
    """A detached real copy; a Python number is float64 until the module is cast."""
    if isinstance(value, Tensor):
        if not value.is_floating_point():
            raise InputError(
                f"{name} must be a real floating tensor; got {value.dtype}. Call .double() on it."
            )
        start = value.detach().clone()
    elif isinstance(value, (int, float)):
        start = torch.tensor(value, dtype=torch.float64)
    else:
        raise InputError(
            f"{name} must be a number or a tensor; got {type(value).__name__}. "
            "Use torch.as_tensor on an array."
        )
    check_finite(name, start, f"Replace it by a finite {name}.")
    return start


def _check_bounds(name: str, start: Tensor, bounds: Bounds | None) -> Tensor | None:
    if bounds is None:
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise InputError(
            f"bounds of {name} must be (low, high); got {bounds!r}. Pass two."
        ) from None
    if not 0 < low < high < math.inf:
        raise InputError(
            f"bounds of {name} must be 0 < low < high; got ({low:g}, {high:g}). Reorder them."
        )
    if not bool(((start > low) & (start < high)).all()):
        raise InputError(
            f"{name} must start strictly between its bounds ({low:g}, {high:g}); "
            f"got {start.min().item():g} to {start.max().item():g}. Widen the bounds."
        )
    return start.new_tensor([low, high])
