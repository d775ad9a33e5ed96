"""One case of `steps.py`: builds the model, trains it for a few steps, prints what it took as JSON.

R = M = 100 and everything trainable, as in the paper; "default" cases are the recipes as they are.
The floor is the sines alone, two per wave, at the rate of `torch.sin` on data that fit the cache;
of bumps the exponential and the scaled erfc, counted as two sines each.
"""

import argparse
import json
import resource
import statistics
import sys
import time

import torch

MEMORY_BEFORE = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def shape_of(case: str) -> dict[str, int]:
    """Rows, inputs, outputs, samples and batch (0: all rows)."""
    data = case.split("-")[1]
    rows, inputs, outputs = {
        "toy": (500, 1, 1),
        "physio": (1000, 1, 3),
        "protein": (41157, 9, 1),
        "power": (8611, 4, 1),
    }[data]
    words = case.split("-")[2:]
    samples = int(words[0]) if words and words[0].isdigit() else 10
    if data in ("protein", "power"):
        samples = {"protein": 100, "power": 50}[data]
    batch = 200 if data == "protein" else 0
    return {"N": rows, "P": inputs, "D": outputs, "S": samples, "batch": batch}


def built(case: str, shape: dict[str, int], options: argparse.Namespace):  # type: ignore[no-untyped-def]
    """A trainer of the case."""
    from deeplfm import FirstOrder, FourierDLFM, InducingDLFM, Training
    from deeplfm.data import dataset, fit_scaling
    from deeplfm.objectives import Batch
    from deeplfm.training import Trainer

    generator = torch.Generator().manual_seed(0)
    if shape["P"] == 1:
        x = torch.linspace(0, 1, shape["N"])[:, None]
        turns = 6.283 * x * torch.tensor([20.0, 20.0, 3.0])[: shape["D"]]
        y = torch.sin(turns) + 0.3 * torch.cos(2 * turns)
    else:
        x = torch.randn(shape["N"], shape["P"], generator=generator)
        y = torch.sin(x.sum(1, keepdim=True))
    y = y + 0.1 * torch.randn(y.shape, generator=generator)
    default = case.endswith("default")
    if case.startswith("rff"):
        forces, features = (5, 20) if "protein" in case else (1, 100)
        recipe = FourierDLFM(num_forces=forces, num_features=features)
        if not default:
            recipe = FourierDLFM(
                num_forces=forces,
                num_features=features,
                weights="diagonal",
                frequencies="fixed_noise",
            )
    else:
        recipe = InducingDLFM()
        if not default:
            recipe = InducingDLFM(output_forces=1, greens_function=FirstOrder(2.5), units="scaled")
    data = dataset(x.numpy(), y.numpy())
    scaling = fit_scaling(data)
    recipe = recipe.resolved(data, scaling)
    columns = [torch.tensor(scaling.inputs(data.x)), torch.tensor(scaling.targets(data.y))]
    inputs, targets = (column.to(options.device, torch.float32) for column in columns)
    batch = Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool), len(data))
    model = recipe.build(data, scaling, generator).to(options.device, torch.float32)
    training = Training(
        steps=10_000,
        num_samples=shape["S"],
        batch_size=shape["batch"] or None,
        backend=options.backend,
    )
    return Trainer(model, batch, training, 0)


def timed(trainer, steps: int, device: str) -> list[float]:  # type: ignore[no-untyped-def]
    """Milliseconds of each step, or of each ten where the device runs ahead."""
    at_once = 5 if device == "cpu" else 50
    times = []
    for _ in range(steps):
        started = time.perf_counter()
        trainer.run(until=trainer.step + at_once)
        if device != "cpu":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - started) * 1e3 / at_once)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    shape = shape_of(options.case)
    trainer = built(options.case, shape, options)
    timed(trainer, 1 if options.smoke else 5, options.device)
    if options.profile:
        with torch.profiler.profile() as profile:
            timed(trainer, 5, options.device)
        print("ops", sum(e.count for e in profile.key_averages() if e.key.startswith("aten")) / 5)
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=40))
    used = time.process_time()
    times = timed(trainer, 3 if options.smoke else options.steps, options.device)
    used = (
        (time.process_time() - used) * 1e3 / (len(times) * (5 if options.device == "cpu" else 50))
    )
    low, middle, high = statistics.quantiles(times, n=4)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - MEMORY_BEFORE
    if options.device != "cpu":
        peak = torch.cuda.max_memory_allocated() / 1024
    from deeplfm.training.schedule import BACKENDS

    result = {
        "case": options.case,
        "cpu_ms": used,
        "ms": middle,
        "ms_low": low,
        "ms_high": high,
        "gigabytes": peak / 2**20,
        "over_sin": None,
        "over_deep_gp": None,
        "over_floor": None,
        "backend": str(BACKENDS[int(trainer.history()["backend"][-1])]),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
