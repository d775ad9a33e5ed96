"""What holds for the whole house: small rooms, a quiet import, documents that are true."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FILES = [
    *SOURCES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*")),
]


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rooms_stay_small_and_say_what_they_own(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300, f"{path} is too long: split it"
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree)
    assert docstring, f"{path} must open with what it owns"
    assert len(docstring.splitlines()) <= 8
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            assert node.end_lineno - node.lineno < 60, f"{path}: {node.name} is too long"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_assert_as_validation(path: Path) -> None:
    assert not [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)
    ]


def test_import_is_quick_quiet_and_changes_nothing() -> None:
    code = """
import time, torch
state = lambda: (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(),
                 torch.get_rng_state().tolist(), torch.are_deterministic_algorithms_enabled())
before, start = state(), time.perf_counter()
import deeplfm
taken = time.perf_counter() - start
assert state() == before, "importing changed a global setting"
import sys
heavy = {"scipy", "pandas", "matplotlib", "sklearn", "typer", "rich", "plotly"} & set(sys.modules)
assert not heavy, heavy
assert taken < 1.0, taken
"""
    done = run(code)
    assert done.stdout == ""
    assert done.stderr == ""


def test_the_front_door_is_small() -> None:
    deeplfm = importlib.import_module("deeplfm")
    names = set(deeplfm.__all__) - {"__version__"}
    assert len(names) <= 25
    assert all(getattr(deeplfm, name).__doc__ for name in names)


def readme_example() -> str:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(example)


def test_readme_example_runs_as_printed() -> None:
    assert len([line for line in readme_example().splitlines() if line.strip()]) <= 11
    errors, coverage = run(readme_example()).stdout.splitlines()
    assert all(float(value) < 1 for value in errors.strip("[]").split())  # better than the mean
    assert all(float(value) > 0.8 for value in coverage.strip("[]").split())


def test_readme_points_at_what_exists() -> None:
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
    for name in re.findall(r"`(deeplfm[.\w]*)`", text):
        resolve(name)
    makefile = (ROOT / "Makefile").read_text()
    for goal in re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE):
        assert f"\n{goal}:" in makefile


def resolve(name: str) -> object:
    """The object of a dotted name; fields and attributes set in __init__ count by their name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if hasattr(found, part):
                found = getattr(found, part)
            else:
                assert isinstance(found, type), name
                module = sys.modules[found.__module__]
                source = Path(str(module.__file__)).read_text()
                fields = set(getattr(found, "__annotations__", {}))
                assert part in fields or re.search(rf"self\.{part}\b[^\n]* = ", source), name
        return found
    raise AssertionError(name)


def test_every_entry_of_the_notation_page_resolves() -> None:
    rows = re.findall(r"^\|.*`deeplfm.*\|$", (ROOT / "docs/notation.md").read_text(), re.MULTILINE)
    assert len(rows) >= 30
    for row in rows:
        _, meaning, name, _, file, equation = (
            cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))
        )
        assert meaning
        assert equation
        resolve(name.strip("`"))
        path = ROOT / "src/deeplfm" / file.strip("`")
        assert path.exists(), file
        defined = name.strip("`").split(".")[-1]
        owner = name.strip("`").split(".")[-2]
        assert defined in path.read_text() or owner in path.read_text(), row


def test_the_benchmark_runs() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/closed_forms.py"), "--smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for expected in ("torch.sin", "torch.exp", "wave, zero", "bump, infinite", "forward+backward"):
        assert expected in done.stdout


def test_the_benchmark_of_starts_runs(tmp_path: Path) -> None:
    out = tmp_path / "start.json"
    command = [sys.executable, str(ROOT / "benchmarks/start.py"), "--smoke", "--out", str(out)]
    subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(out.read_text())
    assert [row["recipe"] for row in rows] == ["Fourier", "inducing"]
    assert all(row["first"] > 0 and row["memory"] > 0 for row in rows)


def test_the_benchmark_of_steps_runs(tmp_path: Path) -> None:
    out = tmp_path / "steps.json"
    command = [sys.executable, str(ROOT / "benchmarks/steps.py"), "--smoke", "--out", str(out)]
    subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(out.read_text())
    assert [row["case"] for row in rows] == ["rff-small", "vip-small"]
    assert all(row["ms"] > 0 and row["floor_ms"] > 0 and row["sin_ms"] > 0 for row in rows)


def test_the_benchmark_of_growth_draws_its_figure(tmp_path: Path) -> None:
    figure = tmp_path / "scaling.svg"
    command = [sys.executable, str(ROOT / "benchmarks/scaling.py"), "--smoke"]
    done = subprocess.run([*command, "--figure", str(figure)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert figure.read_text().lstrip().startswith("<?xml")


def test_intervals_of_the_default_hold_what_they_promise(tmp_path: Path) -> None:
    """Two seeds and few steps of what `benchmarks/coverage.py readme --seeds 10` measures."""
    out = tmp_path / "coverage.json"
    command = [sys.executable, str(ROOT / "benchmarks/coverage.py"), "readme", "--seeds", "2"]
    subprocess.run([*command, "--steps", "40", "--out", str(out)], check=True, capture_output=True)
    runs = json.loads(out.read_text())["runs"]
    assert [run["seed"] for run in runs] == [0, 1]
    covered = [value for run in runs for value in run["coverage"]]
    assert 0.88 <= sum(covered) / len(covered) <= 0.995  # of 450 values in gaps


def test_the_benchmark_of_long_series_runs(tmp_path: Path) -> None:
    out = tmp_path / "long.json"
    command = [
        sys.executable,
        str(ROOT / "benchmarks/long_series.py"),
        "--smoke",
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = json.loads(out.read_text())
    assert found["rows"] == 4000
    assert all(found[name] > 0 for name in ("fit_s", "predict_s"))
    assert len(found["nmse"]) == 3
