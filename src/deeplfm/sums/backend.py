"""Which forms of a sum may be used: an argument that travels from `Training` down to each sum.

    "auto": the fastest that fits.   "plain": every sum as it is written.
    "torch", "triton", "c": no form beyond those of torch, of Triton (CUDA), of C (CPU)

A form that a machine or an argument does not allow is passed over, and the next one is taken.
"""

import logging
from functools import lru_cache
from importlib.util import find_spec
from typing import Literal, TypeAlias, get_args

import torch

from deeplfm.sums.c import library

logger = logging.getLogger(__name__)

Family: TypeAlias = Literal["plain", "torch", "triton", "c"]
Backend: TypeAlias = Literal["auto", "plain", "torch", "triton", "c"]
FAMILIES: tuple[Family, ...] = get_args(Family)

_ALLOWED: dict[Backend, frozenset[Family]] = {
    "auto": frozenset(FAMILIES),
    "plain": frozenset({"plain"}),
    "torch": frozenset({"plain", "torch"}),
    "triton": frozenset({"plain", "torch", "triton"}),
    "c": frozenset({"plain", "torch", "c"}),
}


def allows(backend: Backend, family: Family) -> bool:
    """Whether forms of a family may be used with this backend."""
    return family in _ALLOWED[backend]


def has(family: Family, device: torch.device) -> bool:
    """Whether this machine has a family of forms for tensors on `device`."""
    if family == "c":
        return device.type == "cpu" and library.is_built()
    if family == "triton":
        return device.type == "cuda" and _has_triton()
    return family == "plain" or device.type == "cpu"


def fastest(backend: Backend, device: torch.device) -> Family:
    """The fastest family that a backend amounts to on a device of this machine."""
    return next(one for one in reversed(FAMILIES) if allows(backend, one) and has(one, device))


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    if find_spec("triton") is not None:
        return True
    logger.warning("Triton is not installed: sums take their plain form on CUDA")
    return False
