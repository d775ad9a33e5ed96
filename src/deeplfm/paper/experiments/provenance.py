"""What a result says beside its scores: versions, commit, device, memory, the learning curve."""

import os
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch

from deeplfm.paper.experiments.models import Estimator

_CURVE = 50  # points of a learning curve that are kept


def curve(estimator: Estimator) -> dict[str, list[float]]:
    """The learning curve at evenly spaced steps."""
    history = {k: v for k, v in estimator.history_.items() if np.issubdtype(v.dtype, np.number)}
    count = len(history.get("loss", ()))
    kept = np.unique(np.linspace(0, count - 1, min(count, _CURVE)).astype(int))
    return {name: column[kept].tolist() for name, column in history.items()}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    found = {"python": sys.version.split()[0]}
    for name in ("deeplfm", "torch", "numpy", "scipy", "gpytorch", "statsmodels"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            found[name] = "unknown"
    return found


def commit() -> str:
    """The commit of the source tree; $DEEPLFM_COMMIT where git is not installed."""
    if given := os.environ.get("DEEPLFM_COMMIT"):
        return given
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def device_in_words(device: str) -> str:
    """A device as a reader knows it."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def peak_memory(device: str) -> int:
    """The most bytes in use: on the accelerator, or by the process so far."""
    if device.startswith("cuda"):
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
