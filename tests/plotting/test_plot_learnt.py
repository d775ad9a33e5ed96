"""The loss, the Green's functions and the time constants that are drawn are those of the fit."""

import dataclasses
import math

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm import plotting
from deeplfm.errors import InputError
from deeplfm.regressor import learnt
from pictures import X, Y, line, render, texts


def test_loss_and_its_mean() -> None:
    step, loss = np.arange(100), np.arange(100.0)[::-1] - 200
    loss[50] = np.nan
    axes = plotting.plot_loss({"step": step, "loss": loss})
    np.testing.assert_array_equal(line(axes, "loss").get_ydata(), loss)
    mean = line(axes, "mean of 5 steps").get_ydata()
    # Of a straight line the mean is the line, also at the ends; a gap is left out of it.
    away = np.abs(step - 50) > 2
    np.testing.assert_allclose(mean[away], loss[away])
    assert mean[50] == pytest.approx(np.delete(loss[48:53], 2).mean())
    assert axes.get_yscale() == "linear"


def test_loss_scales() -> None:
    fall = np.exp(-np.arange(200) / 10)
    for loss, scale in ((1e4 * fall + 5, "log"), (1e4 * fall - 5, "asinh"), (fall - 9, "linear")):
        axes = plotting.plot_loss({"step": np.arange(200), "loss": loss})
        assert axes.get_yscale() == scale
        render(axes)
    one = plotting.plot_loss({"step": [1], "loss": [3.0]})
    assert one.lines[0].get_marker() == "o"  # a line of one point cannot be seen
    render(one)
    for wrong in ({}, {"step": [1]}, {"step": [1], "loss": [math.nan]}, {"step": [1], "loss": []}):
        with pytest.raises(InputError, match="history must"):
            plotting.plot_loss(wrong)


def test_greens_functions(model: dlfm.DeepLFMRegressor) -> None:
    for layer, fitted in ((0, model), (1, model.fitted_)):
        axes = plotting.plot_greens_functions(fitted, layer)
        lags, curves = learnt.greens_curves(model.fitted_, layer)
        drawn = {tuple(np.asarray(one.get_ydata())) for one in axes.lines}
        assert drawn == {tuple(curve) for curve in curves.T}
        for one in axes.lines:
            np.testing.assert_array_equal(one.get_xdata(), lags)
        assert len(drawn) == len(axes.lines)  # what is shared is drawn once
    first = next(one for one in learnt.responses(model.fitted_) if one.layer == 0)
    (label, *_) = texts(plotting.plot_greens_functions(model))
    assert label.startswith("hidden 0")
    assert f"time constant {first.time_constant:.3g}, period {first.period:.3g}" in label
    assert plotting.plot_greens_functions(model).get_xlabel() == "lag along t"
    assert plotting.plot_greens_functions(model, 1).get_xlabel().endswith("(no units)")


def test_time_constants(model: dlfm.DeepLFMRegressor) -> None:
    axes = plotting.plot_time_constants(model)
    found = learnt.responses(model.fitted_)
    dots = {
        (*np.ravel(one.get_xydata()), one.get_marker())
        for one in axes.lines
        if one.get_marker() in ("o", "D") and np.size(one.get_xydata())
    }
    expected = {(one.time_constant, row, "o") for row, one in enumerate(found)}
    expected |= {
        (one.period, row, "D") for row, one in enumerate(found) if math.isfinite(one.period)
    }
    assert dots == expected
    assert axes.get_xscale() == "log"
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[0] == "layer 0: hidden 0 along t"
    assert "layer 1: abp along hidden 0 (no units)" in labels
    assert len(labels) == len(found)
    assert texts(axes) == ["time constant", "period"]
    render(axes)


def test_what_has_no_time_constant_is_written() -> None:
    recipe = dlfm.FourierDLFM(
        num_layers=1, num_features=5, greens_function=dlfm.NoDynamics(), lengthscale=0.3
    )
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=1), progress=False).fit(X, Y[:, 1])
    axes = plotting.plot_time_constants(model)
    assert [text.get_text() for text in axes.texts] == ["at once"]
    render(axes)
    greens = plotting.plot_greens_functions(model)
    assert texts(greens) == ["y0: at once"]
    render(greens)


def test_wrong_models(model: dlfm.DeepLFMRegressor) -> None:
    for draw in (plotting.plot_greens_functions, plotting.plot_time_constants):
        with pytest.raises(InputError, match="Call fit"):
            draw(dlfm.DeepLFMRegressor())
        with pytest.raises(InputError, match="member must be 0 to 0"):
            draw(model, member=1)
    for layer in (2, -1):
        with pytest.raises(InputError, match="layer must be 0 to 1"):
            plotting.plot_greens_functions(model, layer)


def test_hostile_names_of_a_fit(model: dlfm.DeepLFMRegressor) -> None:
    renamed = dataclasses.replace(
        model.fitted_, output_names=("_$x", "y" * 300), input_names=("$t_1$",)
    )
    for axes in (
        plotting.plot_greens_functions(renamed),
        plotting.plot_greens_functions(renamed, 1),
        plotting.plot_time_constants(renamed),
    ):
        render(axes)
    assert "lag along $t_1$" not in plotting.plot_greens_functions(renamed).get_xlabel()
