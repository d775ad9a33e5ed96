"""The alphabet of shapes, and the checks that bad input meets first.

Letters (docs/notation.md): S samples, N points, P inputs, D outputs, K poles, Q forces, M inducing
points, B basis functions, R random features. Arrays are always full rank, even at size 1.
Checks that read values run on CPU tensors only: on an accelerator they would stall the stream.
"""

import math
import types
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.errors import InputError

Memory: TypeAlias = Literal["infinite", "zero"]
Number: TypeAlias = Tensor | float | complex  # a Python number takes the dtype of tensors there

_COMPLEX_OF = {torch.float32: torch.complex64, torch.float64: torch.complex128}


def complex_dtype(dtype: torch.dtype) -> torch.dtype:
    """The complex type of the same precision."""
    return _COMPLEX_OF.get(dtype, dtype)


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The real type of the same precision."""
    return next((real for real, cplx in _COMPLEX_OF.items() if cplx == dtype), dtype)


def as_tensors(
    arguments: Mapping[str, Number], complex_names: tuple[str, ...] = ()
) -> list[Tensor]:
    """Python numbers take the precision and device of the tensors; tensors must agree already.

    Real and complex tensors of one precision may mix, where `complex_names` allows complex at all.
    """
    for name, argument in arguments.items():
        if not isinstance(argument, (Tensor, int, float, complex)):
            raise InputError(
                f"{name} must be a tensor or a number; got {type(argument).__name__}. "
                "Use torch.as_tensor on an array or a list."
            )
    tensors = {name: value for name, value in arguments.items() if isinstance(value, Tensor)}
    for name, value in tensors.items():
        if value.dtype not in (*_COMPLEX_OF, *_COMPLEX_OF.values()):
            raise InputError(
                f"{name} must be float32, float64, complex64 or complex128; got {value.dtype}. "
                f"Convert it, for example with {name}.double()."
            )
    precisions = {name: real_dtype(value.dtype) for name, value in tensors.items()}
    if len(set(precisions.values())) > 1:
        found = ", ".join(f"{name} is {dtype}" for name, dtype in precisions.items())
        raise InputError(
            f"all tensors must have one precision; got {found}. Convert them with .to(dtype)."
        )
    devices = {name: value.device for name, value in tensors.items()}
    if len(set(devices.values())) > 1:
        found = ", ".join(f"{name} is on {device}" for name, device in devices.items())
        raise InputError(
            f"all tensors must be on one device; got {found}. Move them with .to(device)."
        )
    precision = next(iter(precisions.values()), torch.float64)
    device = next(iter(devices.values()), torch.device("cpu"))
    for name, number in arguments.items():
        if not isinstance(number, Tensor):
            dtype = complex_dtype(precision) if isinstance(number, complex) else precision
            tensors[name] = torch.as_tensor(number, dtype=dtype, device=device)
        if tensors[name].is_complex() and name not in complex_names:
            raise InputError(f"{name} must be real; got {tensors[name].dtype}. Pass its real part.")
    check_broadcast(tensors)
    return [tensors[name] for name in arguments]


def check_broadcast(tensors: Mapping[str, Tensor]) -> None:
    """The shapes fit together under the usual broadcasting rule, or an error names them."""
    try:  # as torch.broadcast_shapes, which would import half a second of symbolic algebra
        np.broadcast_shapes(*(tuple(tensor.shape) for tensor in tensors.values()))
    except ValueError:
        found = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise InputError(
            f"shapes must broadcast together; got {found}. Add dimensions with [..., None]."
        ) from None


def observed_values(y: Any) -> NDArray[np.float64]:
    """Numbers as float64, NaN where an entry of a masked array is masked."""
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    values = np.asanyarray(y, dtype=float)
    return values.filled(np.nan) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)


def check_positive(name: str, value: Tensor, why: str) -> None:
    """Every entry (of the real part) is above zero; NaN is not. CPU tensors only."""
    real = value.real if value.is_complex() else value
    if real.device.type == "cpu" and not bool((real > 0).all()):
        worst = real.detach().min().item() if not bool(real.isnan().any()) else float("nan")
        raise InputError(f"{name} must be above 0{why}; got {worst:g}. Pass positive values.")


def check_finite(name: str, value: Tensor, do: str) -> None:
    """No NaN, no infinity. CPU tensors only."""
    if value.device.type == "cpu" and not bool(value.isfinite().all()):
        bad = int((~value.isfinite()).sum())
        raise InputError(
            f"{name} must be finite; got {bad} NaN or infinite of {value.numel()} entries. {do}"
        )


def check_count(name: str, value: int) -> None:
    """A number of things: an integer of at least 1, also one of numpy."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be an integer of at least 1; got {value!r}. Pass 1 or more.")


def check_shape(name: str, value: Tensor, expected: tuple[int | str, ...], do: str) -> None:
    """`value` has the expected shape; a letter in `expected` stands for any size."""
    fits = len(value.shape) == len(expected) and all(
        isinstance(size, str) or size == got
        for size, got in zip(expected, value.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(str(size) for size in expected)
        raise InputError(f"{name} must be [{wanted}]; got {tuple(value.shape)}. {do}")


def check_above_zero(name: str, value: object) -> None:
    """A finite number above 0, also one of numpy; not a tensor."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
        shown = f"{value:g}" if number else repr(value)
        raise InputError(f"{name} must be above 0 and finite; got {shown}. Pass a positive number.")


def check_choice(name: str, value: object, choice: Any) -> None:
    """`value` is one of the words of `choice`, a Literal type or `Literal[…] | None`."""
    words = _words(choice)
    # By type first: an array would be compared entry by entry.
    if not any(isinstance(value, type(word)) and value == word for word in words):
        written = [word for word in words if word is not None]
        also = " or None" if None in words else ""
        raise InputError(
            f"{name} must be one of {written}{also}; got {value!r}. Choose one of them."
        )


def check_choices(settings: object) -> None:
    """Every field of a dataclass whose type is a Literal, or a Literal or None, holds its word.

    For `__post_init__`; a recipe has it from its base class.
    """
    kind: Any = type(settings)
    for name, choice in _choices(kind).items():
        check_choice(name, getattr(settings, name), choice)


@cache
def _choices(cls: Any) -> dict[str, Any]:
    """The fields of a dataclass that are choices, with their types."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # of a name that only a type checker imports
        hints = {field.name: field.type for field in fields(cls)}
    return {field.name: hints[field.name] for field in fields(cls) if _words(hints[field.name])}


@cache
def _words(choice: Any) -> tuple[object, ...]:
    """The values that a Literal type admits, with None for `Literal[…] | None`; else nothing."""
    if get_origin(choice) is Literal:
        return get_args(choice)
    if get_origin(choice) not in (Union, types.UnionType):
        return ()
    parts = [(None,) if part is type(None) else _words(part) for part in get_args(choice)]
    return sum(parts, ()) if all(parts) else ()
