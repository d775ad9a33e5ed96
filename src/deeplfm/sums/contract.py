"""The contract of a sum, read from the signature of its plain form and checked at every call.

    x: Float[Tensor, "#S N P"]    rank 3; S and N as everywhere else in the call, or 1 for "#"

All floating tensors of a call, those of an ODE too, have one type and one device.
"""

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions import Dynamics


class _Argument(NamedTuple):
    position: int
    name: str
    dims: tuple[str, ...] | None  # None: of any shape
    floating: bool


@final
class Contract:
    """Checks the tensors of a call."""

    def __init__(self, plain: Callable[..., Any]) -> None:
        self.name = plain.__name__
        parameters = inspect.signature(plain).parameters
        self.arguments = [
            argument
            for position, (name, parameter) in enumerate(parameters.items())
            if (argument := _argument(position, name, parameter.annotation)) is not None
        ]
        self._dynamics = [
            position
            for position, parameter in enumerate(parameters.values())
            if parameter.annotation is Dynamics
        ]

    def check(
        self, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[torch.dtype, torch.device]:
        """The one type and device of all tensors; an error where shapes or those differ."""
        sizes: dict[str, int] = {}
        broadcast: list[tuple[str, str, int]] = []
        kind: tuple[torch.dtype, torch.device] | None = None
        first = ""
        for position, name, dims, floating in self.arguments:
            value = arguments[position] if position < len(arguments) else options.get(name)
            if value is None:
                continue
            if floating:
                if kind is None:
                    kind, first = (value.dtype, value.device), name
                elif (value.dtype, value.device) != kind:
                    self._refuse_kind(name, value, first, kind)
            if dims is None:
                continue
            shape = value.shape
            if len(shape) != len(dims):
                self._refuse(name, dims, shape, sizes)
            for letter, size in zip(dims, shape, strict=True):
                if letter == "_":
                    continue
                if letter[0] == "#":
                    if size != 1:
                        broadcast.append((letter[1:], name, size))
                elif sizes.setdefault(letter, size) != size:
                    self._refuse(name, dims, shape, sizes)
        for letter, name, size in broadcast:
            if sizes.get(letter, size) != size:
                raise InputError(
                    f"{name} of {self.name} must have 1 or {letter} = {sizes[letter]} of a "
                    f"dimension; got {size}. Pass as many as the draw has samples, or one."
                )
        if kind is None:
            raise InputError(f"{self.name} must be given tensors; got none. Pass some.")
        for position in self._dynamics:
            for part in (part for factor in arguments[position].factors for part in factor):
                if (part.dtype, part.device) != kind:
                    self._refuse_kind("a parameter of the ODE", part, first, kind)
                if part.ndim == 2 and not _fits(part, sizes):
                    raise InputError(
                        f"the ODE of {self.name} must have parameters [1 or D, P], D = "
                        f"{sizes['D']} and P = {sizes['P']}; got {list(part.shape)}. "
                        "Tile it for these outputs and inputs."
                    )
        return kind

    def _refuse(
        self, name: str, dims: Sequence[str], shape: Sequence[int], sizes: Mapping[str, int]
    ) -> None:
        wanted = ", ".join(f"{one} = {sizes[one]}" if one in sizes else one for one in dims)
        raise InputError(
            f"{name} of {self.name} must be [{wanted}]; got {list(shape)}. "
            "Evaluate a draw at as many inputs as its layer has."
        )

    def _refuse_kind(
        self, name: str, value: Tensor, first: str, kind: tuple[torch.dtype, torch.device]
    ) -> None:
        raise InputError(
            f"all numbers of {self.name} must be of one type on one device; got {first} of "
            f"{kind[0]} on {kind[1]}, {name} of {value.dtype} on {value.device}. "
            "Convert them with .to(…)."
        )


def _fits(part: Tensor, sizes: Mapping[str, int]) -> bool:
    rows, columns = part.shape
    return rows in (1, sizes.get("D", rows)) and columns == sizes.get("P", columns)


def _argument(position: int, name: str, annotation: Any) -> _Argument | None:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        parts = [part for part in typing.get_args(annotation) if part is not types.NoneType]
        annotation = parts[0] if len(parts) == 1 else None
    text = getattr(annotation, "dim_str", None)
    if text is None:
        return None
    dims = tuple(text.split())
    free = any(one[0] in "*." for one in dims)
    floating = "float32" in (getattr(annotation, "dtypes", None) or ())
    return _Argument(position, name, None if free else dims, floating)
