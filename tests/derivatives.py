"""A value and its partial derivatives as Python numbers, to set beside a reference."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def value_and_partials(
    function: Callable[..., Tensor], arguments: Sequence[float | complex], dtype: torch.dtype
) -> tuple[complex, list[complex]]:
    """The value at scalar arguments, and its derivative in each; complex where the value is."""
    leaves = [torch.tensor(a, dtype=_type(a, dtype)).requires_grad_() for a in arguments]
    value = function(*leaves)
    real = torch.autograd.grad(value.real, leaves, retain_graph=True)
    if not value.is_complex():
        return value.item(), [complex(gradient.item()) for gradient in real]
    imag = torch.autograd.grad(value.imag, leaves)
    partials = []
    for leaf, in_real, in_imag in zip(leaves, real, imag, strict=True):
        # PyTorch gives the conjugate of the derivative of a holomorphic function.
        holomorphic = in_real.conj().resolve_conj().item()
        partials.append(holomorphic if leaf.is_complex() else complex(in_real, in_imag))
    return value.item(), partials


def _type(argument: float | complex, dtype: torch.dtype) -> torch.dtype:
    if not isinstance(argument, complex):
        return dtype
    return {torch.float32: torch.complex64, torch.float64: torch.complex128}[dtype]
