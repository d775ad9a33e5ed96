"""One sum: its contract, its plain form, and faster candidates in the order they are tried.

    @sum_of
    def bump_sum(x: Float[Tensor, "#S N P"], …) -> …: the plain form; its signature is the contract
    bump_sum.add("c", by_c, fits=…)

A call checks shapes, types and devices of every tensor once, before any candidate reads memory;
then the first candidate that the backend allows, the machine has and that fits is taken.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, ParamSpec, TypeVar, final

import torch
from torch import Tensor

from deeplfm.sums.backend import Backend, Family, allows, has
from deeplfm.sums.contract import Contract

P = ParamSpec("P")
R = TypeVar("R")


@final
@dataclass(frozen=True)
class Candidate:
    """A faster form of a sum.

    compute: takes the arguments of the sum; None where their values leave nothing to gain.
    fits:    whether it can do these arguments at all, from shapes, types and kinds alone.
    anywhere: it runs on every device, not only on that of its family.
    dtype:   the type of numbers that it is compiled for; None: any.
    worth:   whether arguments that are elsewhere should be brought to its device (`Sum.on`).
    """

    family: Family
    name: str
    compute: Callable[..., Any]
    fits: Callable[..., bool]
    anywhere: bool = False
    dtype: torch.dtype | None = None
    worth: Callable[..., bool] = lambda *_: True

    def __call__(self, backend: Backend, arguments: Any, options: Any) -> Any:
        """What it computes; one that is made of other sums is told the backend."""
        return self.compute(*arguments, **handed_on(self.compute, backend, options))

    def may(self, backend: Backend, dtype: torch.dtype, device: torch.device) -> bool:
        """Whether the backend, the machine and the type of the numbers allow it."""
        if not allows(backend, self.family):
            return False
        if self.dtype not in (None, dtype):
            return False
        return has(self.family, device) or (self.anywhere and self.family == "torch")


@final
class Sum(Generic[P, R]):
    """A function with candidates; `backend` is an argument beside those of the plain form."""

    def __init__(self, plain: Callable[P, R], check: Callable[..., None] | None = None) -> None:
        self.plain, self._check = plain, check
        self.contract = Contract(plain)
        self.candidates: list[Candidate] = []
        self.__name__, self.__doc__ = plain.__name__, plain.__doc__

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> R:
        """The sum with the backend "auto"."""
        return self.by("auto", *arguments, **options)

    def by(self, backend: Backend, *arguments: P.args, **options: P.kwargs) -> R:
        """The sum by the first candidate that `backend` allows and that fits; else plain."""
        dtype, device = self.contract.check(arguments, options)
        if self._check is not None:
            self._check(*arguments, **options)
        for candidate in self.candidates:
            if candidate.may(backend, dtype, device) and candidate.fits(*arguments, **options):
                total: R | None = candidate(backend, arguments, options)
                if total is not None:
                    return total
        return self.plain(*arguments, **handed_on(self.plain, backend, options))

    def on(self, device: torch.device | str, backend: Backend, *arguments: Tensor) -> R:
        """The sum of tensors on the CPU, computed on `device` where a form for it fits and gains.

        Results come back. It is for sums that are large beside what makes their arguments, and
        results: that is quicker on a CPU than by many small calls of a device.
        """
        there = torch.device(device)
        if there.type == "cpu" or not any(
            candidate.may(backend, arguments[0].dtype, there)
            and candidate.fits(*arguments)
            and candidate.worth(*arguments)
            for candidate in self.candidates
        ):
            return self.by(backend, *arguments)  # type: ignore[call-arg, arg-type]
        moved = [part.to(there) for part in arguments]
        total: Any = self.by(backend, *moved)  # type: ignore[call-arg, arg-type]
        back: R = type(total)(part.cpu() for part in total)
        return back

    def add(
        self,
        family: Family,
        compute: Callable[..., Any],
        *,
        fits: Callable[..., bool] = lambda *_, **__: True,
        name: str | None = None,
        anywhere: bool = False,
        dtype: torch.dtype | None = None,
        worth: Callable[..., bool] = lambda *_: True,
        first: bool = False,
    ) -> Candidate:
        """Append a candidate to the list, or put it first; one in C is of float32 by default."""
        if family == "c" and dtype is None:
            dtype = torch.float32
        own = (fits, anywhere, dtype, worth)
        candidate = Candidate(family, name or compute.__name__, compute, *own)
        self.candidates.insert(0 if first else len(self.candidates), candidate)
        return candidate

    def remove(self, candidate: Candidate) -> None:
        """Take a candidate off the list."""
        self.candidates.remove(candidate)


@cache
def _takes_backend(function: Callable[..., Any]) -> bool:
    return "backend" in inspect.signature(function).parameters


def handed_on(function: Callable[..., Any], backend: Backend, options: Any) -> Any:
    """The options of a call, with the backend for a form that is made of other sums."""
    return {**options, "backend": backend} if _takes_backend(function) else options


def sum_of(plain: Callable[P, R]) -> Sum[P, R]:
    """The sum whose contract and plain form a function is."""
    return Sum(plain)


def sum_with(check: Callable[..., None]) -> Callable[[Callable[P, R]], Sum[P, R]]:
    """The same, with a check of what shapes alone cannot say."""
    return lambda plain: Sum(plain, check)
