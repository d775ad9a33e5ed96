"""What one training step costs: time and memory, beside yardsticks measured in the same run.

`python benchmarks/steps.py [--device cuda] [--cases ...] [--smoke] [--out steps.json]`. Each case
is a process of its own (`one_step.py`). Times are medians after warm-up with quartiles; the ratios
say how many times as long as a yardstick a step takes. Below 1 of the floor is possible: it counts
every wave, and tables need fewer.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from step_cases import CASES

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]


def measured(case: str, options: argparse.Namespace) -> Row:
    """One case, in a process of its own."""
    device = "cpu" if options.smoke else options.device
    rounds = 2 if options.smoke else options.rounds
    command = [sys.executable, str(HERE / "one_step.py"), case, "--device", device]
    command += ["--rounds", str(rounds), "--backend", options.backend]
    command += ["--threads", str(options.threads)] if options.threads else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"case": case, "error": done.stderr.strip().splitlines()[-1]}
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def ratio(row: Row, name: str) -> str:
    return number(None if row[name] is None else row["ms"] / row[name])


def view(rows: list[Row]) -> Table:
    table = Table(title="one training step")
    right = ("ms", "quartiles", "bar", "GB", "bar", "/ sin", "/ DeepGP", "/ floor", "first, s")
    table.add_column("case")
    for heading in right:
        table.add_column(heading, justify="right")
    table.add_column("backend")
    for row in rows:
        if "error" in row:
            table.add_row(row["case"], row["error"])
            continue
        time, memory = CASES[row["case"]].bars
        table.add_row(
            row["case"],
            number(row["ms"]),
            f"{number(row['ms_low'])} to {number(row['ms_high'])}",
            number(time),
            number(row["gigabytes"]),
            number(memory),
            *(ratio(row, name) for name in ("sin_ms", "deep_gp_ms", "floor_ms")),
            number(row["first_step_s"]),
            row["backend"],
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", nargs="*", choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--smoke", action="store_true", help="two rounds of the smallest shapes")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kind = "smoke" if options.smoke else options.device
    cases = options.cases or [name for name, case in CASES.items() if case.device == kind]
    rows = [measured(case, options) for case in cases]
    Console(width=140).print(view(rows))
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    if any("error" in row for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
