"""How the cost of a training step of an inducing layer grows with each of its sizes.

`python benchmarks/inducing_step.py`: one layer over per-draw inputs (the second of a deep model),
forward and backward, everything trainable. One size is doubled twice from a common shape; all
shapes are timed in turn, medians over rounds. Linear growth is a factor 2 and 4, at most.
"""

import argparse
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

import deeplfm as dlfm
from deeplfm.layers import InducingLayer

SHAPE = {"S": 4, "N": 1000, "P": 3, "D": 3, "M": 100, "B": 100}


def step(shape: dict[str, int], device: str) -> float:
    """Seconds of one step."""
    generator = torch.Generator().manual_seed(0)
    z = torch.rand(shape["M"], shape["P"], generator=generator)
    layer = InducingLayer(
        shape["P"],
        shape["D"],
        greens_function=dlfm.FirstOrder(5.0),
        inducing_inputs=z,
        num_basis=shape["B"],
        lengthscale=0.3,
    ).to(device=device, dtype=torch.float32)
    x = torch.rand(shape["S"], shape["N"], shape["P"], generator=generator).to(device)
    x.requires_grad_()
    started = time.perf_counter()
    path = layer.draw_for_training(shape["S"])
    (path(x).square().mean() + layer.kl()).backward()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def gram(count: int) -> float:
    """Seconds of the part that grows with M³: a Cholesky factor, there and back."""
    z = torch.rand(count, 1, dtype=torch.float64)
    matrix = torch.exp(-((z - z.mT) ** 2)) + 0.01 * torch.eye(count, dtype=torch.float64)
    matrix.requires_grad_()
    started = time.perf_counter()
    torch.linalg.cholesky_ex(matrix)[0].sum().backward()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    shapes = {"as it is": SHAPE}
    for name, size in SHAPE.items():
        for factor in (2, 4):
            shapes[f"{name} × {factor}"] = SHAPE | {name: factor * size}
    times: dict[str, list[float]] = {name: [] for name in shapes}
    for _ in range(options.rounds):
        for name, shape in shapes.items():
            times[name].append(step(shape, options.device))
    base = statistics.median(times["as it is"])
    table = Table(title=f"one step, {SHAPE}, {base * 1e3:.0f} ms")
    for heading in ("shape", "times the base", "spread (quartiles)"):
        table.add_column(heading, justify="right")
    for name, seconds in times.items():
        low, middle, high = statistics.quantiles(seconds, n=4)
        table.add_row(name, f"{middle / base:.2f}", f"{low / base:.2f} to {high / base:.2f}")
    console = Console()
    console.print(table)
    share = statistics.median(gram(SHAPE["M"]) for _ in range(options.rounds)) / base
    console.print(f"the M³ part (Cholesky and its gradient, M = {SHAPE['M']}): {share:.1%} of it")


if __name__ == "__main__":
    main()
