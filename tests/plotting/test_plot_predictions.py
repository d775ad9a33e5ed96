"""Predictions are drawn as they are, on the user's axes, in the user's style, under any name."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from matplotlib.dates import date2num
from matplotlib.figure import Figure

import deeplfm as dlfm
from deeplfm import plotting
from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.plotting.canvas import written
from mixtures import mixture
from pictures import ORDER, RANDOM, X, Y, line, prediction, render, texts


def test_predictions_are_drawn_in_order_of_x() -> None:
    p = prediction()
    axes = plotting.plot_predictions(p, X[:, None], probability=0.8, observed=Y, draws=4)
    render(axes)
    lower, upper = p.interval(0.8)
    for k, one in enumerate(axes):
        assert one.get_title() == p.names[k]
        mean = line(one, "mean")
        np.testing.assert_array_equal(mean.get_xdata(), X[ORDER])
        np.testing.assert_array_equal(mean.get_ydata(), p.mean[ORDER, k])
        (band,) = one.collections
        assert band.get_label() == "80 % interval"
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
        for edge in (lower, upper):
            assert set(zip(X, edge[:, k], strict=True)) <= corners
        drawn = [one for one in one.lines if len(one.get_xdata()) == 30 and one is not mean]
        drawn = [one for one in drawn if one.get_label() != "observed"]
        found = {tuple(one.get_ydata()) for one in drawn}
        assert len(found) == 4
        assert found <= {tuple(sample[ORDER, k]) for sample in p.samples}


def test_gaps_are_not_drawn() -> None:
    held_out = np.where(np.isnan(Y), 0.0, np.nan)
    axes = plotting.plot_predictions(prediction(), X, observed=Y, held_out=held_out)
    seen = ~np.isnan(Y[ORDER])
    for k, one in enumerate(axes):
        np.testing.assert_array_equal(line(one, "observed").get_xdata(), X[ORDER][seen[:, k]])
        np.testing.assert_array_equal(line(one, "observed").get_ydata(), Y[ORDER][seen[:, k], k])
    np.testing.assert_array_equal(line(axes[0], "held out").get_xdata(), X[ORDER][~seen[:, 0]])
    assert not [one for one in axes[1].lines if one.get_label() == "held out"]
    (legend,) = axes[0].figure.legends  # once for all, with what any of them shows
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["mean", "90 % interval", "observed", "held out"]


def test_data_may_have_an_x_of_its_own() -> None:
    own, values = np.array([5.0, 4.0]), np.array([[1.0, 2.0], [3.0, np.nan]])
    axes = plotting.plot_predictions(
        prediction(), torch.tensor(X), observed=(own, values), truth=([9, 8, 7], np.ones((3, 2)))
    )
    assert line(axes[0], "observed").get_xdata().tolist() == [4, 5]
    assert line(axes[0], "observed").get_ydata().tolist() == [3, 1]
    assert line(axes[1], "observed").get_ydata().tolist() == [2]
    assert line(axes[1], "truth").get_xdata().tolist() == [7, 8, 9]


def test_one_output_takes_flat_data_and_one_axes() -> None:
    p = mixture(np.ones((3, 30, 1)), np.ones(1))
    figure = Figure()
    ax = figure.subplots()
    (found,) = plotting.plot_predictions(p, list(X), observed=pd.Series(Y[:, 1]), axes=ax)
    assert found is ax
    assert ax.get_title() == "output 0"
    assert texts(ax) == ["mean", "90 % interval", "observed"]
    assert plt.get_fignums() == []  # nothing of our own


def test_axes_given_are_axes_returned(model: dlfm.DeepLFMRegressor) -> None:
    figure = Figure()
    four = figure.subplots(2, 2)
    p = prediction()
    assert list(plotting.plot_predictions(p, X, axes=four[0])) == list(four[0])
    assert list(plotting.plot_calibration(p, Y, axes=list(four[1]))) == list(four[1])
    for draw in (
        lambda ax: plotting.plot_loss(model.history_, ax=ax),
        lambda ax: plotting.plot_greens_functions(model, ax=ax),
        lambda ax: plotting.plot_time_constants(model, ax=ax),
    ):
        ax = Figure().subplots()
        assert draw(ax) is ax
    assert plt.get_fignums() == []


@pytest.mark.parametrize("count", [1, 4, 7, 12, 14])
def test_new_axes_are_as_many_as_outputs(count: int) -> None:
    p = Predictive.without_noise(RANDOM.standard_normal((5, 30, count)))
    axes = plotting.plot_latent_forces(p, X)
    assert axes.shape == (count,)
    assert len(axes[0].figure.axes) == count  # no empty ones
    assert [one.get_title() for one in axes] == [f"force {k}" for k in range(count)]
    render(axes)
    bottom = [one for one in axes if one.xaxis.get_tick_params()["labelbottom"]]
    assert axes[-1] in bottom


def test_forces_and_hidden_functions(model: dlfm.DeepLFMRegressor) -> None:
    for p, draw in (
        (model.latent_forces(X), plotting.plot_latent_forces),
        (model.hidden_functions(X), plotting.plot_hidden_functions),
    ):
        axes = draw(p, X, draws=2)
        assert tuple(one.get_title() for one in axes) == p.names
        np.testing.assert_array_equal(line(axes[1], "mean").get_ydata(), p.mean[ORDER, 1])
        with pytest.raises(InputError, match="without noise"):
            draw(prediction(), X)


def test_dates() -> None:
    start = datetime(2024, 2, 28, 12)
    days = [start + timedelta(hours=3 * k) for k in range(30)]
    expected = date2num(days)
    p = prediction()
    for given in (
        np.array(days, dtype="datetime64[s]"),
        pd.Series(days),
        pd.DatetimeIndex(days),
        days,
        [day.replace(tzinfo=UTC) for day in days],
    ):
        axes = plotting.plot_predictions(p, given, observed=(given, Y))
        np.testing.assert_allclose(line(axes[0], "mean").get_xdata(orig=False), expected)
        render(axes)
        labels = [text.get_text() for text in axes[1].get_xticklabels()]
        assert "Mar" in labels or any("Feb" in label or "Mar" in label for label in labels)
        plt.close("all")
    with pytest.raises(InputError, match="dates for both"):
        plotting.plot_predictions(p, days, observed=(X, Y))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"x": X[:-1]}, "row for each of the 30 points"),
        ({"x": np.ones((30, 2))}, r"\[N\] or \[N, 1\]"),
        ({"x": np.full(30, np.nan)}, "30 NaN"),
        ({"x": ["a"] * 30}, "numbers or dates"),
        ({"x": [None] * 30}, "numbers or dates; got NoneType"),
        ({"x": np.arange(30).astype("timedelta64[s]")}, "durations"),
        ({"observed": Y[:, :1]}, r"observed must be \[30, 2\]"),
        ({"held_out": Y[:-1]}, r"held_out must be \[30, 2\]"),
        ({"observed": (X, Y, Y)}, "pair"),
        ({"observed": [["a", "b"]] * 30}, "hold numbers"),
        ({"truth": (X[:4], Y)}, r"truth must be \[4, 2\]"),
        ({"probability": 1.5}, "probability must be"),
        ({"draws": 21}, "0 to 20"),
        ({"draws": -1}, "0 to 20"),
        ({"axes": "here"}, "2 matplotlib Axes; got 1 of str"),
        ({"axes": []}, "2 matplotlib Axes; got 0"),
    ],
)
def test_what_cannot_be_drawn(change: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"predictive": prediction(), "x": X} | change
    with pytest.raises(InputError, match=says):
        plotting.plot_predictions(**arguments)
    assert plt.get_fignums() == []  # no empty figure for notebooks to show


@pytest.mark.usefixtures("without_shape_checks")
def test_only_predictions_are_drawn() -> None:
    mean: Any = prediction().mean
    for draw in (plotting.plot_predictions, plotting.plot_latent_forces):
        with pytest.raises(InputError, match="got ndarray"):
            draw(mean, X)
    with pytest.raises(InputError, match="got ndarray"):
        plotting.plot_calibration(mean, Y)


HOSTILE = ("$x_1", "_private", "<script>alert(1)</script>", r"\frac{$a$}", "a\nb", "x" * 500, "$$")


def test_hostile_names() -> None:
    assert written("$1 and $2") == r"\$1 and \$2"
    assert written("a\n b") == "a b"
    assert not written("_hidden").startswith("_")
    long = written("channel " * 20 + "7")
    assert len(long) == 40
    assert long.endswith("7")
    p = mixture(RANDOM.standard_normal((5, 30, 7)), np.ones(7), None, HOSTILE)
    axes = plotting.plot_predictions(p, X)
    render(axes)
    assert axes[2].get_title() == HOSTILE[2]
    both = plotting.plot_calibration(p, p.samples[0])
    assert len(texts(both[1])) == 2 + len(HOSTILE)
    render(both)
    with plt.rc_context({"text.usetex": True}):
        usual = plotting.plot_predictions(p, X)
    assert not usual[0].title.get_usetex()


def test_the_users_style_holds(model: dlfm.DeepLFMRegressor) -> None:
    cycle = cycler(color=["#123456", "#abcdef"]) * cycler(linestyle=["--"], marker=["s"])
    with plt.style.context("dark_background"), plt.rc_context({"axes.prop_cycle": cycle}):
        p = prediction()
        axes = plotting.plot_predictions(p, X, observed=Y, held_out=Y, truth=Y, draws=1)
        others = [
            plotting.plot_loss(model.history_),
            plotting.plot_greens_functions(model),
            plotting.plot_time_constants(model),
            *plotting.plot_calibration(p, Y),
        ]
        render(axes)
    assert line(axes[0], "mean").get_color() == "#123456"
    assert line(axes[0], "mean").get_linestyle() == "-"
    assert same_color(axes[0].collections[0].get_facecolor()[0][:3], "#123456")
    assert line(axes[0], "held out").get_color() == "#abcdef"
    for one in (line(axes[0], "observed"), line(axes[0], "truth")):
        assert same_color(one.get_color(), "white")
    for one in [*axes, *others]:
        assert not [drawn for drawn in one.lines if same_color(drawn.get_color(), "black")]


def test_a_picture_as_a_file(tmp_path: Path) -> None:
    (ax, _) = plotting.plot_predictions(prediction(), X)
    plotting.save_figure(ax.figure, tmp_path / "new" / "picture.png")
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["picture.png"]


def test_matplotlib_is_imported_when_something_is_drawn() -> None:
    code = "import sys, deeplfm.plotting; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
