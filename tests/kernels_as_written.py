"""What tests of kernels share: on a CPU they are interpreted, slowly but the same."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPS = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}
BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def missing_for_kernels() -> str:
    """What kernels lack here. They are compiled or interpreted by what is set before an import."""
    if not torch.cuda.is_available() and "triton" not in sys.modules:
        os.environ["TRITON_INTERPRET"] = "1"
    if find_spec("triton") is None:
        return "the kernels need Triton"
    if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
        return "Triton was imported to compile, and there is no GPU"
    return ""


def uniform(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    numbers = torch.rand(shape, generator=generator, dtype=torch.float64)
    return low + (high - low) * numbers


def compare(
    fused: Callable[..., Tensor],
    plain: Callable[..., Tensor],
    arguments: Sequence[Tensor],
    dtype: torch.dtype,
    roundings: float,
    terms: float = 0.0,
    device: str = DEVICE,
) -> None:
    """Values and gradients, within roundings of the largest; the plain ones are in float64.

    `terms`: how large what is added up may be, where a sum of it may cancel to far less.
    """
    arguments = [argument.to(dtype) for argument in arguments]  # the same numbers for both
    exact = [argument.double().clone().requires_grad_() for argument in arguments]
    ours = [argument.to(device).clone().requires_grad_() for argument in arguments]
    value, expected = fused(*ours), plain(*exact)
    assert value.dtype == dtype
    assert value.shape == expected.shape
    weights = uniform(*expected.shape, seed=7).to(dtype)
    (value * weights.to(device)).sum().backward()
    (expected * weights.double()).sum().backward()
    pairs = [(value, expected), *((a.grad, b.grad) for a, b in zip(ours, exact, strict=True))]
    for found, wanted in pairs:
        assert found is not None
        assert wanted is not None
        assert found.shape == wanted.shape
        if wanted.numel() == 0:
            continue
        error = (found.detach().cpu().double() - wanted.detach()).abs().max()
        size = max(terms, wanted.detach().abs().max().item())
        assert error <= roundings * EPS[dtype] * size, found.shape
