"""The page of a state-space model: modes and ODEs in words and numbers, panels, known inputs."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.data import dataset
from deeplfm.plotting import (
    plot_greens_functions,
    plot_latent_forces,
    plot_loss,
    plot_predictions,
    plot_time_constants,
)
from deeplfm.report import modes, write_report
from deeplfm.report.predictions import gather
from report.pages import HOSTILE, Page, X, fitted, outputs

MODES = dlfm.MarkovDLFM(modes=3)
NAMES = ["abp", "ecg"]


@pytest.fixture(scope="module", autouse=True)
def without_plotly() -> Iterator[None]:
    """Pages without the charting library in them are written and read ten times as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plotly.offline.get_plotlyjs", lambda: "")
        yield


@pytest.fixture(scope="module")
def model() -> dlfm.DeepLFMRegressor:
    return fitted(pd.DataFrame({"t": X}), pd.DataFrame(outputs(2), columns=NAMES), MODES)


@pytest.fixture(scope="module")
def driven() -> dlfm.DeepLFMRegressor:
    recipe = dlfm.MarkovDLFM(greens_function=dlfm.SecondOrder(0.4, 2.0), level=False)
    return fitted(pd.DataFrame({"t": X}), pd.DataFrame(outputs(2), columns=NAMES), recipe)


@pytest.fixture(scope="module")
def panel() -> dlfm.DeepLFMRegressor:
    """Two series with known inputs, the first of them with a name that means harm."""
    ids = np.repeat([HOSTILE[0], "second"], 40)
    t = np.tile(X[::3], 2)
    known = pd.DataFrame({"u": (t > 4) * 1.0})
    y = np.sin(2 * t) + (ids == "second") * 5 + known["u"].to_numpy()
    model = dlfm.DeepLFMRegressor(MODES, dlfm.Training(steps=3), progress=False)
    return model.fit(t, y, known=known, series=ids)


def written(model: dlfm.DeepLFMRegressor, folder: Path, **options: object) -> Page:
    write_report(model, folder / "report.html", **options)  # type: ignore[arg-type]
    return Page(folder / "report.html")


@pytest.fixture(scope="module")
def page(model: dlfm.DeepLFMRegressor, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return written(model, tmp_path_factory.mktemp("markov"))


def test_modes_in_words_and_in_numbers(page: Page, model: dlfm.DeepLFMRegressor) -> None:
    for expected in ("MarkovDLFM", "modes", "float64", "A state-space latent force model of abp"):
        assert expected in page.text, expected
    assert re.search(r"Mode 0 swings with a period of 3\.\d+ and forgets with a time", page.text)
    assert re.search(r"it carries \d+\.\d % of (abp|ecg), ", page.text)
    assert "Times are in the units of t" in page.text
    assert "a level that wanders" in page.text
    assert "Forces have no units" not in page.text
    assert "What each mode adds to the outputs, in their units" in page.text
    assert re.search(r"Mode 0, of period 3\.\d+, in ecg", page.text)
    found = modes.modes_of(model.fitted_)
    assert (np.diff(found.period, axis=0) >= 0).all()
    # The truth: both are waves of frequency 2, with hardly any noise.
    assert found.period[1, 0] == pytest.approx(np.pi, rel=0.1)
    assert found.share[1].sum(0) == pytest.approx(1, abs=0.1)
    one = model.fitted_.physics(1)[1]
    noise = np.array([one.numbers()[f"{name}: noise, standard deviation"] for name in NAMES])
    total = (one.amplitude**2).sum(1) + noise**2
    shares = (one.amplitude**2 / total[:, None]).T[list(one.active)]
    np.testing.assert_allclose(modes.shares_of(one), shares)
    drawn = model.posterior(200)["mode 0: time constant"]
    np.testing.assert_allclose(found.time_constant[:, 0], np.quantile(drawn, [0.05, 0.5, 0.95]))


def test_charts_draw_five_functions_and_the_parts_of_the_loss(page: Page) -> None:
    assert page.kinds("output-0") == {"mean", "interval", "draws", "observed"}
    draws = [t for t in page.figures["output-1"]["data"] if t["meta"] == "draws"]
    assert len(draws) == 5
    assert len({tuple(one["y"]) for one in draws}) == 5
    assert page.kinds("force-0") == {"mean", "interval", "draws"}
    legend = {t["name"]: t.get("visible") for t in page.figures["learning"]["data"]}
    assert legend == {"loss": None, "log evidence": "legendonly", "log prior": "legendonly"}
    places = {attrs["id"] for _, attrs in page.tags if attrs.get("role") == "figure"}
    assert places == set(page.figures)


def test_only_what_is_drawn_is_sampled(
    model: dlfm.DeepLFMRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    kind = type(model.fitted_)
    draw = kind._functions_at

    def counted(self: object, X: object, count: int, *rest: object, **more: object) -> object:
        counts.append(count)
        return draw(self, X, count, *rest, **more)

    monkeypatch.setattr(kind, "_functions_at", counted)
    gather(model, None)
    assert counts == [5, 5]  # of the outputs and of the modes


def test_forces_of_odes_with_their_quantities(
    driven: dlfm.DeepLFMRegressor, tmp_path: Path
) -> None:
    page = written(driven, tmp_path)
    shown = " ".join(page.text.split())
    assert "in units in which the gain of the first output is 1" in shown
    for name in ("abp: damping", "ecg: frequency", "force 0: lengthscale", "ecg: gain of force 0"):
        low, middle, high = (float(v) for v in re.findall(rf"{name} (\S+) (\S+) (\S+)", shown)[0])
        assert low <= middle <= high
    assert "abp: noise, standard deviation" in shown
    assert "abp swings with a period of" in shown
    assert "Mode 0" not in shown


def test_dates_are_durations(tmp_path: Path) -> None:
    days = pd.DataFrame({"t": X * 86400})
    model = fitted(days, pd.DataFrame(outputs(1), columns=["level"]), MODES)
    page = written(model, tmp_path, origin=pd.Timestamp("2024-02-28 12:00"))
    assert re.search(r"Mode 0 swings with a period of 3\.\d+ days", page.text)
    assert re.search(r"Mode 0, of period 3\.\d+ days, in level", page.text)
    assert "Rates are per second" in page.text


def test_a_panel_draws_its_first_series_and_scores_all(
    panel: dlfm.DeepLFMRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = np.array([8.2, 8.4, 8.2])
    held_out = dataset(
        pd.DataFrame({"x0": later}),
        pd.DataFrame({"y0": np.sin(2 * later) + np.array([0, 5, 5])}),
        known=np.zeros((3, 1)),
        series=[HOSTILE[0], "second", "second"],
    )
    shown = gather(panel, held_out)
    monkeypatch.setattr("deeplfm.report.page.gather", lambda *_: shown)  # once is enough
    page = written(panel, tmp_path, held_out=held_out)
    monkeypatch.undo()
    assert f"The first of 2 series is drawn: {HOSTILE[0]}" in page.text
    assert f"2: {HOSTILE[0]}, second" in page.text.replace("\n", " ")
    assert "known=U_new, series=ids" in page.text
    assert "decay of the answer to known inputs" in page.text
    points = {t["meta"]: len(t["x"]) for t in page.figures["output-0"]["data"]}
    assert (points["observed"], points["held out"]) == (40, 1)
    assert shown.training_scored is not None
    assert shown.held_out_scored is not None
    ids = np.repeat([HOSTILE[0], "second"], 40)
    expected = panel.predict(np.tile(X[::3], 2), series=ids)
    np.testing.assert_allclose(shown.training_scored.predictive.mean[:, 0], expected)
    expected = panel.predict(later, known=np.zeros((3, 1)), series=[HOSTILE[0], "second", "second"])
    np.testing.assert_allclose(shown.held_out_scored.predictive.mean[:, 0], expected)
    without = dataset(later, np.sin(2 * later))
    with pytest.raises(dlfm.InputError, match="series must say which of 2 series"):
        write_report(panel, tmp_path / "x.html", held_out=without)


def test_heavy_tails_are_scored(tmp_path: Path) -> None:
    recipe = dlfm.MarkovDLFM(modes=2, likelihood=dlfm.StudentT())
    page = written(fitted(X, outputs(1), recipe, steps=2), tmp_path)
    assert "estimated from draws" in page.text
    assert "Student-t" in page.text


def test_pictures_of_modes_and_of_odes(
    model: dlfm.DeepLFMRegressor, driven: dlfm.DeepLFMRegressor
) -> None:
    axes = plot_time_constants(model)
    assert "the mode of period 3." in axes.get_yticklabels()[0].get_text()
    with pytest.raises(dlfm.InputError, match="a MarkovDLFM of modes alone"):
        plot_greens_functions(model)
    (first, second) = plot_greens_functions(driven).get_lines()
    assert "abp: time constant" in str(first.get_label())
    g = driven.fitted_.model.driven.dynamics()
    lags = np.asarray(second.get_xdata())
    damping, frequency = (g.value(name)[1, 0].item() for name in ("damping", "frequency"))
    swing = np.sqrt(complex(frequency**2 - damping**2))  # it may have become overdamped
    expected = (np.exp(-damping * lags) * np.sin(swing * lags) / swing).real
    np.testing.assert_allclose(np.asarray(second.get_ydata()), expected, atol=1e-6)
    for layer, member in ((1, 0), (0, 1)):
        with pytest.raises(dlfm.InputError, match="must be 0 to 0"):
            plot_greens_functions(driven, layer, member=member)
    loss = plot_loss(model.history_).get_lines()[0]
    np.testing.assert_array_equal(loss.get_ydata(), model.history_["loss"])
    for one in (model, driven):
        panels = plot_latent_forces(one.latent_forces(X, num_samples=4), X, draws=3)
        assert len(panels) == len(one.fitted_.force_names(0))
        assert len(panels[0].get_lines()) == 4
    predictive = model.predictive(X)
    plot_predictions(predictive, X, observed=outputs(2))
    assert callable(predictive._samples)  # nothing was sampled where no draws are drawn


def test_modes_that_carry_nothing(tmp_path: Path) -> None:
    recipe = dlfm.MarkovDLFM(modes=0)
    model = fitted(X, outputs(1), recipe, steps=1)
    page = written(model, tmp_path)
    assert "No mode carries anything" in page.text
    assert "There is no mode to draw" in page.text
    with pytest.raises(dlfm.InputError, match="must have modes or ODEs to draw"):
        plot_time_constants(model)
