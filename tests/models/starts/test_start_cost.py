"""What a start may cost, counted: solves, features, bumps and memory, not seconds."""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import Dataset, dataset, fit_scaling
from deeplfm.data.cardiac import cardiac
from deeplfm.layers import FourierLayer, InducingLayer
from deeplfm.models import Recipe
from deeplfm.models.starts import fourier as fourier_start
from deeplfm.models.starts import inducing_points
from deeplfm.models.starts import warped as warped_start
from deeplfm.models.starts.oscillation import dominant_oscillation
from deeplfm.models.starts.spectrum import periodogram


def beats(rows: int = 300) -> Dataset:
    series = cardiac(rows)
    return dataset(series.times, np.where(series.tests["imputation"], np.nan, series.values))


def table(rows: int = 400, inputs: int = 4) -> Dataset:
    x = np.random.default_rng(0).standard_normal((rows, inputs))
    return dataset(x, np.sin(x.sum(1)))


def waves(rows: int = 300) -> Dataset:
    """Few periods: too few for a phase."""
    x = np.linspace(0, 4, rows)
    return dataset(x, np.sin(2 * np.pi * x) + 0.1 * np.random.default_rng(1).normal(size=rows))


def build(recipe: Recipe, data: Dataset) -> None:
    scaling = fit_scaling(data)
    recipe.resolved(data, scaling).build(data, scaling, torch.Generator().manual_seed(0))


def counted(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, size: Callable[..., int]
) -> list[int]:
    """The size of every call of `owner.name`, as it comes."""
    calls: list[int] = []
    original = getattr(owner, name)

    def counting(*arguments: Any, **options: Any) -> Any:
        calls.append(size(*arguments))
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, counting)
    return calls


def test_a_spectrum_needs_no_wave_per_row_and_frequency() -> None:
    """3000 rows and 6000 frequencies: 140 MB for one table of all waves; a few rows of it do."""
    x = np.linspace(0, 1, 3000)
    tracemalloc.start()
    omega, _ = periodogram(x, np.sin(300 * x)[:, None])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(omega) > 5900
    # Two tables of √6000 complex waves, and as much again while they are made.
    assert peak < 6 * 78 * 3000 * 16


def test_an_oscillation_is_solved_for_all_pieces_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One solve per candidate, whatever the number of pieces, and some for the windows."""
    x = np.linspace(0, 1, 2000)
    y = np.stack([np.sin(600 * x), np.cos(600 * x)], axis=1)  # 16 pieces, 800 windows
    calls = counted(monkeypatch, np.linalg, "solve", lambda a, b: len(a))
    assert dominant_oscillation(x, y) is not None
    assert len(calls) < 97 + 60


@pytest.mark.parametrize(("data", "own"), [(waves(), 3), (table(), 2), (table(inputs=2), 3)])
def test_fourier_features_are_made_once_per_layer(
    monkeypatch: pytest.MonkeyPatch, data: Dataset, own: int
) -> None:
    """And once more for the part of the input beside an oscillation, or where hidden functions
    without a target are drawn from the prior.
    """
    slow = counted(monkeypatch, FourierLayer, "features", lambda layer, x, omega: len(x[0]))
    made = counted(monkeypatch, fourier_start, "features_at", lambda layer, values: len(values))
    build(dlfm.FourierDLFM(hidden_dim=3, num_features=10), data)
    assert slow == []
    assert made == [len(data)] * own


def test_features_of_a_phase_are_made_twice_per_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the phase once; of shapes for their sizes, and at 1 + 5 x 3 draws with slopes."""
    slow = counted(monkeypatch, FourierLayer, "features", lambda layer, x, omega: len(x[0]))
    made = counted(monkeypatch, warped_start, "features_at", lambda layer, values: len(values))
    build(dlfm.FourierDLFM(num_features=10), beats())
    assert slow == []
    assert made == [len(beats())] * (2 + 16 + 13)  # the last draws need no slopes


@pytest.mark.parametrize("data", [beats(), table()])
def test_few_bumps_are_exact(monkeypatch: pytest.MonkeyPatch, data: Dataset) -> None:
    """The rows of the last fit, and a few each time the reach of a layer is asked for."""
    asked = counted(monkeypatch, InducingLayer, "features", lambda layer, x: len(x))
    exact = import_module("deeplfm.sums.bumps_at")  # the plain form; lookups are not counted
    rows = counted(monkeypatch, exact, "bumps_of", lambda g, x, *_: x.shape[1])
    rounds = counted(monkeypatch, inducing_points, "place", lambda *_: 1)
    monkeypatch.setattr("deeplfm.models.starts.inducing.place", inducing_points.place)
    build(dlfm.InducingDLFM(num_inducing=20), data)
    assert asked == []
    assert rounds
    # Each round 16 rows, and twice all of them in the two layers whose points reach everything.
    assert sum(rows) <= len(data) + 16 * len(rounds) + 2 * len(data)


def test_all_is_asked_only_where_the_farthest_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    options: dict[str, Any] = {"greens_function": dlfm.FirstOrder(100.0), "lengthscale": 0.1}
    everywhere = InducingLayer(1, 1, inducing_inputs=x[::10], **options)
    a_part = InducingLayer(1, 1, inducing_inputs=x[:100:10], **options)
    rows = counted(monkeypatch, inducing_points, "_explained", lambda layer, x: len(x))
    with torch.no_grad():
        assert inducing_points.reaches_all(everywhere, x, 0.95)
        assert sum(rows) == len(x)
        rows.clear()
        assert not inducing_points.reaches_all(a_part, x, 0.95)
        assert sum(rows) < len(x) / 5
        assert inducing_points.reached(everywhere, x).min() >= 0.95
        assert inducing_points.reached(a_part, x).min() < 0.95


def test_a_start_imports_nothing_heavy() -> None:
    code = """
import sys, numpy as np, torch, deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
x = np.linspace(0, 1, 60)
for inputs in (x, np.random.default_rng(0).random((60, 2))):
    data = dataset(inputs, np.sin(40 * x))
    for recipe in (dlfm.FourierDLFM(num_features=4), dlfm.InducingDLFM(num_inducing=8)):
        scaling = fit_scaling(data)
        recipe.resolved(data, scaling).build(data, scaling, torch.Generator())
print({"scipy", "sympy", "torch._dynamo"} & set(sys.modules))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
