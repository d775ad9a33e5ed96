"""What one training step costs: time and memory, beside yardsticks measured in the same run.

`python benchmarks/steps.py [--device cuda] [--cases ...] [--smoke] [--out steps.json]`. Each case is
a process of its own: its memory is the peak above the import of torch. Times are medians after
warm-up, with quartiles, and ratios: to `torch.sin` over as many elements as the model has waves, to
a step of GPyTorch's deep GP (where installed), and to the floor.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

CASES = {  # the bars: ms of a step, GB of memory
    "rff-toy": ("cpu", 10, None),
    "rff-toy-default": ("cpu", 15, None),
    "rff-physio": ("cpu", 45, 0.3),
    "rff-physio-default": ("cpu", 67, 0.3),
    "vip-toy": ("cpu", 12, None),
    "vip-toy-default": ("cpu", None, None),
    "vip-physio": ("cpu", 50, 0.3),
    "vip-physio-default": ("cpu", None, None),
    "rff-physio-100": ("cuda", 1.0, None),
    "rff-physio-100-default": ("cuda", 1.5, None),
    "vip-physio-50": ("cuda", 1.5, None),
    "vip-physio-50-default": ("cuda", None, None),
    "rff-protein": ("cuda", 0.5, None),
    "vip-power": ("cuda", 4.0, None),
}
HERE = Path(__file__).resolve().parent


def measured(case: str, device: str, options: argparse.Namespace) -> dict[str, object]:
    """One case, in a process of its own."""
    command = [sys.executable, str(HERE / "one_step.py"), case, "--device", device]
    command += ["--steps", str(options.steps), "--backend", options.backend]
    command += ["--threads", str(options.threads)] if options.threads else []
    command += ["--smoke"] if options.smoke else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"case": case, "error": done.stderr.strip().splitlines()[-1:]}
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def number(value: object, digits: int = 1) -> str:
    return "–" if not isinstance(value, (int, float)) else f"{value:.{digits}f}"


def table(rows: list[dict[str, object]]) -> Table:
    view = Table(title="one training step")
    headings = (
        "case",
        "ms",
        "quartiles",
        "bar",
        "GB",
        "bar",
        "/ sin",
        "/ DeepGP",
        "/ floor",
        "how",
    )
    for heading in headings:
        view.add_column(heading, justify="left" if heading in ("case", "how") else "right")
    for row in rows:
        case = str(row["case"])
        if "error" in row:
            view.add_row(case, str(row["error"]))
            continue
        _, bar, memory = CASES[case]
        view.add_row(
            case,
            number(row["ms"], 2),
            f"{number(row['ms_low'], 2)} to {number(row['ms_high'], 2)}",
            number(bar),
            number(row["gigabytes"], 2),
            number(memory),
            number(row["over_sin"]),
            number(row["over_deep_gp"], 2),
            number(row["over_floor"]),
            str(row["backend"]),
        )
    return view


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", nargs="*", choices=list(CASES))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--smoke", action="store_true", help="three steps of the smallest shapes")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = options.cases or [name for name, (at, *_) in CASES.items() if at == options.device]
    rows = [measured(case, options.device, options) for case in cases]
    Console().print(table(rows))
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    if any("error" in row for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
