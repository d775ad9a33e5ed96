"""The zero line of speed: nanoseconds per element of the closed forms, beside torch.sin and exp.

`make bench`, or `python benchmarks/closed_forms.py --help`.
Everything is measured in one run, interleaved, medians with quartiles: machines are noisy, ratios
are what to compare. The backward pass is that of the sum over elements, in every argument.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import deeplfm as dlfm
from deeplfm.responses import (
    bump_response,
    system_bump_response,
    system_wave_response,
    wave_response,
)

Arguments = list[Tensor]
Function = Callable[..., Tensor]


def cases(elements: int, device: str, dtype: torch.dtype) -> dict[str, tuple[Function, Arguments]]:
    """What is timed: a name, a function, and arguments of `elements` elements each."""
    generator = torch.Generator().manual_seed(0)

    def uniform(low: float, high: float) -> Tensor:
        values = low + (high - low) * torch.rand(elements, generator=generator)
        return values.to(device=device, dtype=dtype)

    x, frequency, center = uniform(0, 3), uniform(-20, 20), uniform(-1, 3)
    lengthscale, decay, turn = uniform(0.1, 1), uniform(0.3, 5), uniform(0.5, 10)
    complex_pole = torch.complex(decay, turn)
    oscillator = dlfm.SecondOrder(0.7, 3.0).to(device=device, dtype=dtype)
    found: dict[str, tuple[Function, Arguments]] = {
        "torch.sin": (torch.sin, [x]),
        "torch.exp": (torch.exp, [x]),
    }
    for pole, kind in ((decay, "real pole"), (complex_pole, "complex pole")):
        for memory in ("infinite", "zero"):
            found[f"wave, {memory}, {kind}"] = (
                partial(wave_response, memory=memory),
                [x, frequency, pole],
            )
            found[f"bump, {memory}, {kind}"] = (
                partial(bump_response, memory=memory),
                [x, center, lengthscale, pole],
            )
    found["wave, infinite, SecondOrder"] = (
        partial(system_wave_response, oscillator),
        [x, frequency],
    )
    found["bump, infinite, SecondOrder"] = (
        partial(system_bump_response, oscillator),
        [x, center, lengthscale],
    )
    return found


def seconds(function: Function, arguments: Arguments, backward: bool) -> float:
    """One timed call, the device idle before and after."""
    leaves = [argument.detach().requires_grad_(backward) for argument in arguments]
    _wait(arguments[0])
    start = time.perf_counter()
    with torch.set_grad_enabled(backward):
        value = function(*leaves)
        if backward:
            (value.real if value.is_complex() else value).sum().backward()
    _wait(arguments[0])
    return time.perf_counter() - start


def measure(
    found: dict[str, tuple[Function, Arguments]], elements: int, repeats: int
) -> list[dict[str, Any]]:
    """Rows of the table: medians and quartiles in ns per element, ratios to torch.sin."""
    times: dict[tuple[str, bool], list[float]] = {}
    for repeat in range(repeats + 1):
        for name, (function, arguments) in found.items():
            for backward in (False, True):
                taken = seconds(function, arguments, backward)
                if repeat > 0:  # the first round warms up
                    times.setdefault((name, backward), []).append(taken * 1e9 / elements)
    rows: list[dict[str, Any]] = []
    for (name, backward), values in times.items():
        quartiles = statistics.quantiles(values, n=4)
        rows.append(
            {
                "name": name,
                "pass": "forward+backward" if backward else "forward",
                "median_ns": quartiles[1],
                "quartiles_ns": [quartiles[0], quartiles[2]],
                "ratio_to_sin": quartiles[1] / statistics.median(times["torch.sin", backward]),
            }
        )
    return rows


def show(rows: list[dict[str, Any]], title: str) -> None:
    table = Table(title=title)
    for heading in ("closed form", "pass", "ns / element", "quartiles", "× torch.sin"):
        table.add_column(heading, justify="left" if heading in ("closed form", "pass") else "right")
    for row in rows:
        table.add_row(
            str(row["name"]),
            str(row["pass"]),
            f"{row['median_ns']:.2f}",
            " … ".join(f"{value:.2f}" for value in row["quartiles_ns"]),
            f"{row['ratio_to_sin']:.1f}",
        )
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--smoke", action="store_true", help="a quick run, to see that it works")
    options = parser.parse_args()
    if options.smoke:
        options.elements, options.repeats = 2_000, 2
    dtype = getattr(torch, options.dtype)
    found = cases(options.elements, options.device, dtype)
    rows = measure(found, options.elements, options.repeats)
    threads = f", {torch.get_num_threads()} threads" if options.device == "cpu" else ""
    show(rows, f"{options.elements:,} elements, {options.dtype}, {options.device}{threads}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))


def _wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
