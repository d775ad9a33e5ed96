"""What a command line is, and the smallest fit of a table."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Outcome = Literal["refused", "done"]

QUICK = ("--steps", "1", "--no-check", "--samples", "1")


@dataclass(frozen=True)
class Line:
    """A command line; `files` are there before, with what is in them."""

    name: str
    arguments: tuple[str, ...]
    outcome: Outcome
    files: dict[str, bytes] = field(default_factory=dict)


def rows(count: int = 12, seed: int = 0) -> str:
    """The lines of a small table of two columns."""
    noise = np.random.default_rng(seed).normal(size=count)
    return "".join(f"{0.1 * k:.2f},{np.sin(k) + 0.1 * noise[k]:.4f}\n" for k in range(count))


def fit(
    name: str, table: str | bytes, outcome: Outcome, *options: str, file: str = "d.csv"
) -> Line:
    """A fit of the default model to a table."""
    content = table.encode() if isinstance(table, str) else table
    return Line(name, ("fit", file, "--out", "run", *QUICK, *options), outcome, {file: content})
