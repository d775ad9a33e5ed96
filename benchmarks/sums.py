"""What every candidate of every sum gains over the next best, and the page that says so.

`python benchmarks/sums.py [--device cuda] [--smoke] [--out sums.json]`, then
`python benchmarks/sums.py --page docs/sums.md results/speed/sums-*.json`. Forward and backward
together, candidates in turn, medians; on CUDA as recorded graphs, where they can be. The next best
is what would be taken without the candidate: those after it, or the plain form (for a candidate of
torch, without any of C: it is for machines that have no compiler).
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from deeplfm.sums import SUMS, Backend, Candidate
from deeplfm.sums.candidate import handed_on
from sum_cases import CASES, Case, Maker

SECONDS = 5.0  # of a case, from which on three rounds must do
WORTH = 1.3  # times as fast as the next best, at some shape
Row = dict[str, Any]


PLAIN, WITHOUT_C = "plain", "plain, without C"


def plain_form(case: Case, backend: Backend) -> Candidate:
    """The plain form, whose own sums take what the backend allows."""
    return Candidate(
        "plain",
        PLAIN,
        lambda *a, **o: case.of.plain(*a, **handed_on(case.of.plain, backend, o)),
        lambda *_, **__: True,
    )


def runner(case: Case, form: Candidate, device: str) -> Callable[[], Any] | None:
    """One evaluation with its gradients; none where the candidate passes these arguments on."""
    samples = case.samples or (10 if device == "cpu" else 100)
    maker = Maker(device, case.dtype, samples)
    arguments = case.make(maker)
    may = form.may(form.family, case.dtype, torch.device(device))
    if not may or not form.fits(*arguments, **case.options):
        return None

    def run() -> Any:
        total = form(form.family, arguments, case.options)
        if total is None or not case.gradients:
            return total
        parts = total if isinstance(total, tuple) else (total,)
        loss = sum(part.square().sum() for part in parts)
        return torch.autograd.grad(loss, maker.leaves, allow_unused=True)

    if not case.gradients:
        with torch.no_grad():
            return run if run() is not None else None
    return run if run() is not None else None


def recorded(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same as a CUDA graph; as it is where it cannot be recorded."""
    stream = torch.cuda.Stream()
    try:
        with torch.cuda.stream(stream):
            for _ in range(3):
                run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
    except RuntimeError:
        return run
    return graph.replay


def milliseconds(runs: dict[str, Callable[[], Any]], device: str, rounds: int) -> dict[str, float]:
    """Medians; forms take turns, so that a busy moment meets all of them."""
    if device == "cuda":
        runs = {name: recorded(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    begun = time.perf_counter()
    for number in range(rounds):
        if number >= 3 and time.perf_counter() - begun > SECONDS:
            break
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            if device == "cuda":
                torch.cuda.synchronize()
            times[name].append((time.perf_counter() - started) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def measured(name: str, case: Case, device: str, rounds: int) -> list[Row]:
    forms = {each.name: each for each in case.of.candidates}
    forms |= {PLAIN: plain_form(case, "auto"), WITHOUT_C: plain_form(case, "torch")}
    made = {label: runner(case, form, device) for label, form in forms.items()}
    runs = {label: run for label, run in made.items() if run is not None}
    with torch.set_grad_enabled(case.gradients):
        found = milliseconds(runs, device, rounds)
    order = [label for label in found if label not in (PLAIN, WITHOUT_C)]
    rows = []
    for place, label in enumerate(order):
        last = WITHOUT_C if forms[label].family == "torch" else PLAIN
        others = [found[other] for other in (*order[place + 1 :], last)]
        rows.append(
            {
                "sum": case.of.__name__,
                "candidate": label,
                "family": forms[label].family,
                "shape": name,
                "device": device,
                "dtype": str(case.dtype).removeprefix("torch."),
                "ms": found[label],
                "gain": min(others) / found[label],
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
            }
        )
    return rows


def page(rows: list[Row]) -> str:
    """A row for each candidate, at the shape where it gains most."""
    lines = [
        "# Sums and their candidates",
        "",
        "Written by `benchmarks/sums.py`; do not edit. A sum takes the first candidate that fits.",
        f"One that is not at least {WORTH} times as fast as the next best, at some shape that",
        "users have, is not kept. The next best is what would be taken without it. Milliseconds",
        "are of one evaluation with its gradients (predictions: without).",
        "",
        "| sum | candidate | family | most gain | at | type | device | ms | next best, ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in SUMS:
        for form in each.candidates:
            known = [
                row for row in rows if row["sum"] == each.__name__ and row["candidate"] == form.name
            ]
            if not known:
                lines.append(f"| `{each.__name__}` | `{form.name}` | {form.family} | | | | | | |")
                continue
            best = max(known, key=lambda row: float(row["gain"]))
            lines.append(
                f"| `{each.__name__}` | `{form.name}` | {form.family} | {best['gain']:.1f} "
                f"| {best['shape']} | {best['dtype']} | {best['device']} | {best['ms']:.3g} "
                f"| {best['gain'] * best['ms']:.3g} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, help="with --page: what was measured")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", help="these shapes; others in --out stay as they are")
    parser.add_argument("--smoke", action="store_true", help="one round of a few cases")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page is not None:
        rows = [row for path in options.results for row in json.loads(path.read_text())]
        options.page.write_text(page(rows))
        return
    names = [name for name, case in CASES.items() if options.device in case.devices]
    if options.smoke:
        names = ["toy, waves", "50 inducing points", "physio, layer 1"]
    rows = []
    if options.only:
        names = [name for name in names if name in options.only]
        known = json.loads(options.out.read_text()) if options.out is not None else []
        rows = [row for row in known if row["shape"] not in names]
    for name in names:
        rows += measured(name, CASES[name], options.device, 1 if options.smoke else options.rounds)
        for row in rows[-8:]:
            if row["shape"] == name:
                print(
                    f"{row['sum']:20} {name:36} {row['candidate']:18} {row['ms']:9.3f} "
                    f"{row['gain']:.2f}"
                )
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
