"""A few of the attacks on the files of runs; `make torture` makes hundreds of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked")
def test_runs_outlast_what_happens_to_their_files() -> None:
    """Flipped bits, ends before operations on files, two commands at once; of either kind."""
    folder = Path(__file__).parent.parent
    command = [sys.executable, "-m", "torture.attacks", "--routes", "markov,rows"]
    command += ["flips", "8", "crashes", "1", "kills", "1", "pairs", "1"]
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=paths)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["attack"] for one in found] == ["flips", "crashes", "kills", "pairs"]
    assert [one["bad"] for one in found] == [0, 0, 0, 0], done.stdout
    assert found[0]["outcomes"]["refused"] > 4
    assert min(found[0]["operations"].values()) > 30
