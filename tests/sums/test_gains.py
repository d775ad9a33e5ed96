"""Every candidate has a row in the benchmark, and pays: the page of sums is that of the results."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deeplfm.sums import SUMS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = sorted((ROOT / "results" / "speed").glob("sums-*.json"))
WORTH = 1.3  # times as fast as the next best, at some shape that users have


@pytest.mark.parametrize(
    ("name", "candidate"),
    [(each.__name__, form.name) for each in SUMS for form in each.candidates],
)
def test_a_candidate_pays_somewhere(name: str, candidate: str) -> None:
    rows = [row for path in RESULTS for row in json.loads(path.read_text())]
    gains = [r["gain"] for r in rows if r["sum"] == name and r["candidate"] == candidate]
    assert gains, "a row in benchmarks/sum_cases.py is missing"
    assert max(gains) >= WORTH


def test_the_page_is_that_of_the_results(tmp_path: Path) -> None:
    page = tmp_path / "sums.md"
    command = [sys.executable, str(ROOT / "benchmarks/sums.py"), "--page", str(page)]
    subprocess.run([*command, *map(str, RESULTS)], check=True, capture_output=True)
    assert page.read_text() == (ROOT / "docs" / "sums.md").read_text()


def test_the_benchmark_of_sums_runs(tmp_path: Path) -> None:
    out = tmp_path / "sums.json"
    command = [sys.executable, str(ROOT / "benchmarks/sums.py"), "--smoke", "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    rows = json.loads(out.read_text())
    assert {row["sum"] for row in rows} == {"plane_wave_sum", "matheron_draw", "fourier_sum"}
    assert all(row["ms"] > 0 and row["gain"] > 0 for row in rows)
