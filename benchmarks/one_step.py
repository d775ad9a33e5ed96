"""One case of `steps.py` in this process: a JSON line with its times, memory and yardsticks.

Memory is the peak above the import of torch; on CUDA that of the device. Yardsticks are measured
here and now: `torch.sin` over as many elements as the step has waves and bumps; a step of a deep GP
of GPyTorch (100 inducing points, 10 samples); and the floor, arithmetic over the rate of a matrix
product: 52 operations for a wave (two sines of 20 each, six multiply-adds), as many for a bump.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable

import torch

BEFORE = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

OPERATIONS = 52  # of a wave or a bump, there and back


def milliseconds(
    action: Callable[[], object], rounds: int, device: str, each: int = 1
) -> list[float]:
    """Of each round, per one of the `each` things that a round does."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - started) * 1e3 / each)
    return times


def quickest(action: Callable[[], object], device: str) -> float:
    milliseconds(action, 2, device)
    return min(milliseconds(action, 7, device))


def rate(device: str) -> float:
    """Operations per millisecond of a matrix product in float32."""
    size = 1024 if device == "cpu" else 8192
    a, b = (torch.randn(size, size, device=device) for _ in range(2))
    return 2 * size**3 / quickest(lambda: a @ b, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backend", default="auto")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)

    from deeplfm.training.schedule import USED
    from step_cases import CASES

    case, device = CASES[options.case], options.device
    started = time.perf_counter()
    trainer = case.trainer(device, options.backend)
    built = time.perf_counter() - started
    (first,) = milliseconds(lambda: trainer.run(until=1), 1, device)
    together = 5 if device == "cpu" else 50
    trainer.run(until=together)

    def some() -> None:
        trainer.run(until=trainer.step + together)

    times = milliseconds(some, options.rounds, device, together)
    low, middle, high = statistics.quantiles(times, n=4)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - BEFORE) * 1024
    if device != "cpu":
        peak = torch.cuda.max_memory_allocated()

    from deep_gp import deep_gp_step

    elements = case.waves() + case.bumps()
    phases = torch.rand(elements, device=device)
    other = None if case.device == "smoke" else deep_gp_step(case, device)
    print(
        json.dumps(
            {
                "case": options.case,
                "device": device,
                "threads": torch.get_num_threads(),
                "backend": USED[int(trainer.history()["backend"][-1])],
                "ms": middle,
                "ms_low": low,
                "ms_high": high,
                "first_step_s": built + first / 1e3,
                "gigabytes": peak / 2**30,
                "waves": case.waves(),
                "bumps": case.bumps(),
                "sin_ms": quickest(lambda: torch.sin(phases), device),
                "floor_ms": OPERATIONS * elements / rate(device),
                "deep_gp_ms": None if other is None else quickest(other, device),
            }
        )
    )


if __name__ == "__main__":
    main()
