"""The page itself: what it holds, for plain and for awkward models, and what it cannot do."""

import dataclasses
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

import deeplfm as dlfm
from deeplfm.data import Dataset
from deeplfm.report import write_report
from report.pages import HOSTILE, Page, X, fitted, held_out, outputs, series


@pytest.fixture(scope="module")
def model() -> dlfm.DeepLFMRegressor:
    return series(["abp", "ecg"])


@pytest.fixture(scope="module")
def page(model: dlfm.DeepLFMRegressor, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("run & <b> 'x'") / "report.html"
    write_report(model, path, held_out=held_out(model))
    return Page(path)


def written(model: dlfm.DeepLFMRegressor, folder: Path, **options: object) -> Page:
    write_report(model, folder / "report.html", **options)  # type: ignore[arg-type]
    return Page(folder / "report.html")


def without_data(model: dlfm.DeepLFMRegressor) -> dlfm.DeepLFMRegressor:
    copy = dlfm.DeepLFMRegressor(**model.get_params(deep=False))
    return copy.with_fitted(dataclasses.replace(model.fitted_, data=None), flat=False)


def test_everything_is_on_the_page(page: Page) -> None:
    for expected in ("FourierDLFM", "num_features", "learning_rate", "Seed", "5 of 5", "float32"):
        assert expected in page.text, expected
    for expected in (dlfm.__version__, "time constant of", "standard deviation"):
        assert expected in page.text, expected
    # 120 rows, of which 20 have no output at all; 5 more of each output are missing.
    shown = " ".join(page.text.split())
    assert "Rows 100" in shown
    assert "ecg 95 5 5.0 %" in shown
    for expected in ("NMSE", "RMSE", "MNLL", "CRPS", "90 % coverage", "On held-out data"):
        assert expected in page.text, expected
    assert {"output-0", "output-1", "greens-0", "greens-1", "force-0"} <= set(page.figures)
    assert {"pit", "coverage", "learning"} <= set(page.figures)
    places = {attrs["id"] for _, attrs in page.tags if attrs.get("role") == "figure"}
    assert places == set(page.figures)
    assert all(a.get("aria-label") for _, a in page.tags if a.get("role") == "figure")


def test_a_chart_holds_mean_bands_draws_and_points(page: Page) -> None:
    assert page.kinds("output-0") == {"mean", "interval", "draws", "observed", "held out"}
    traces = page.figures["output-0"]["data"]
    assert len([t for t in traces if t["meta"] == "draws"]) == 5
    assert [t["name"] for t in traces[:4]] == ["5 %", "95 %", "25 %", "75 %"]
    grid = page.data["shared"]["grid"]
    assert len(grid) <= 2000
    assert (grid[0], grid[-1]) == (0, pytest.approx(X[::6].max() + 4.1))
    assert all(len(t["y"]) == len(grid) for t in traces if t["x"] == "grid")
    low, high = (np.array(traces[k]["y"]) for k in (0, 1))
    mean = np.array(next(t["y"] for t in traces if t["meta"] == "mean"))
    assert (low < mean).all()
    assert (mean < high).all()
    (gap,) = page.figures["output-0"]["layout"]["shapes"]
    assert gap["x0"] < X[20] < X[44] < gap["x1"]
    observed = next(t for t in traces if t["meta"] == "observed")
    assert len(observed["x"]) == 95


def test_scores_are_shown_per_output_and_set(page: Page) -> None:
    assert page.text.count("held-out") >= 3
    assert page.text.count("all outputs (mean)") == 2
    levels = next(t for t in page.figures["coverage"]["data"] if t["name"] == "all outputs")
    assert levels["x"][0] == 0
    assert len(levels["x"]) == 12
    legend = {t["name"]: t.get("visible") for t in page.figures["learning"]["data"]}
    assert legend["loss"] is None
    assert legend["KL"] == legend["expected log likelihood"] == "legendonly"


def test_the_way_back_is_quoted(page: Page) -> None:
    folder = re.escape("run & <b> 'x'")
    assert re.search(rf'dlfm.load\("{folder}\d*"\)', page.text)
    shell = r"deeplfm predict 'run & <b> '\"'\"'x'\"'\"'\d*' --at grid.csv --out predictions.csv"
    assert re.search(shell, page.text)


def test_nothing_can_be_fetched_and_only_our_scripts_run(page: Page) -> None:
    metas = [a for tag, a in page.tags if tag == "meta"]
    policy = next(a["content"] for a in metas if a.get("http-equiv")) or ""
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    nonce = policy.split("nonce-")[1].split("'")[0]
    scripts = [a for tag, a in page.tags if tag == "script"]
    assert [a.get("nonce") for a in scripts] == [None, nonce, nonce]
    for tag, attrs in page.tags:
        assert not {name for name in attrs if name.startswith("on")}, tag
        for name in ("src", "href", "action", "srcset", "data"):
            assert (attrs.get(name) or "#").startswith(("#", "data:,")), tag
    ours = page.source.replace(get_plotlyjs(), "")
    assert len(ours) < len(page.source) / 2
    assert not re.findall(r"https?:|//\w+\.\w+|@import|url\(", ours)
    for name in ("page.css", "page.js"):
        assert files("deeplfm.report").joinpath(name).read_text() in page.source


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    page = written(series(HOSTILE), tmp_path)
    assert not set("<>&\u2028\u2029") & set(page.block)
    expected = {"script", "style", "meta", "input", "html", "head", "body", "title", "link"}
    expected |= {"header", "main", "nav", "section", "h1", "h2", "h3", "p", "a", "ul", "li", "dl"}
    expected |= {"dt", "dd", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    expected |= {"details", "summary", "figure", "figcaption", "form", "fieldset", "legend"}
    expected |= {"label", "span", "pre", "code", "noscript"}
    assert {tag for tag, _ in page.tags} <= expected
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert "<script>alert(1)</script>" in page.text  # as text
    assert "w" * 61 not in page.source
    names = [t["name"] for t in page.figures["greens-1"]["data"]]
    assert any("&lt;" in name for name in names)
    titles = [f["layout"]["xaxis"]["title"]["text"] for f in page.data["figures"]]
    assert not any("<" in found for found in [*names, *titles])


def test_several_inputs_are_drawn_against_the_observations(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    inputs = random.uniform(size=(80, 2))
    y = np.stack([inputs[:, 0], np.full(80, 7.0)], axis=1)  # one is constant
    model = fitted(inputs, pd.DataFrame(y, columns=["hidden 0", "constant"]))
    model.with_fitted(
        dataclasses.replace(model.fitted_, input_names=("x", "x")), flat=False
    )  # alike
    page = written(model, tmp_path)
    points = next(t for t in page.figures["output-0"]["data"] if t.get("meta") == "observed")
    assert len(points["x"]) == len(points["error_y"]["array"]) == 80
    assert "grid" not in page.data["shared"]
    assert "On the training data" in page.text
    assert "other inputs at their medians" in page.text
    row = page.text.split("Scores:")[1].split("constant\n")[1]
    assert row.startswith("training\n80\n–\n")
    assert "x (2)" in page.text
    empty = written(without_data(model), tmp_path)
    assert "nothing to draw" in empty.text
    assert not [name for name in empty.figures if name.startswith("output")]


def test_dates_and_durations(tmp_path: Path) -> None:
    recipe = dlfm.InducingDLFM(num_inducing=10, hidden_dim=2)
    seconds = pd.DataFrame({"t": X * 86400})
    model = fitted(seconds, pd.DataFrame(outputs(1), columns=["level"]), recipe, steps=2)
    origin = pd.Timestamp("2024-02-28 12:00", tz="Europe/Berlin")
    page = written(model, tmp_path, origin=origin)
    grid = page.data["shared"]["grid"]
    assert grid[0] == "2024-02-28T12:00:00.000000"
    assert grid[-1] == "2024-03-07T12:00:00.000000"
    assert page.figures["output-0"]["layout"]["xaxis"]["type"] == "date"
    assert re.search(r"period of [\d.]+ (days|hours)", page.text)
    assert "seconds since 2024-02-28 12:00:00+01:00" in page.text
    assert re.search(r"lag \((days|hours)\)", page.block)
    several = fitted(np.random.default_rng(0).uniform(size=(30, 2)), np.arange(30.0), steps=2)
    with pytest.raises(dlfm.InputError, match="single input"):
        write_report(several, tmp_path / "x.html", origin=origin)


def test_without_data_it_says_so(model: dlfm.DeepLFMRegressor, tmp_path: Path) -> None:
    page = written(without_data(model), tmp_path)
    assert "not kept" in page.text
    assert "Nothing to score" in page.text
    grid = page.data["shared"]["grid"]
    assert (grid[0], grid[-1]) == (X[0], pytest.approx(X[-1]))
    assert page.kinds("output-0") == {"mean", "interval", "draws"}
    tested = written(without_data(model), tmp_path, held_out=held_out(model))
    assert tested.kinds("output-0") == {"mean", "interval", "draws", "held out"}
    assert "On held-out data" in tested.text


def test_held_out_columns_must_be_those_of_the_fit(
    model: dlfm.DeepLFMRegressor, tmp_path: Path
) -> None:
    other = dataclasses.replace(held_out(model), output_names=("ecg", "abp"))
    with pytest.raises(dlfm.InputError, match="with other names"):
        write_report(model, tmp_path / "x.html", held_out=other)
    assert not list(tmp_path.iterdir())


def test_mixtures_instant_layers_and_heavy_tails(tmp_path: Path) -> None:
    recipe = dlfm.FourierDLFM(
        num_features=10,
        hidden_dim=2,
        greens_function=[dlfm.NoDynamics(), dlfm.FirstOrder(2.0)],
        likelihood=dlfm.StudentT(),
    )
    y = outputs(1)
    model = fitted(X, y, recipe, steps=4, restarts=2, combine="mixture")
    page = written(model, tmp_path)
    assert "Student-t" in page.text
    assert "they answer at once" in page.text
    assert "greens-0" not in page.figures
    assert "greens-1" in page.figures


def test_many_rows_are_thinned_and_the_page_says_so(tmp_path: Path) -> None:
    model = series(["level"])
    x = np.linspace(0, 8, 12_000)[:, None]
    many = Dataset(x, np.sin(2 * x), ("t",), ("level",))
    fitted = dataclasses.replace(model.fitted_, data=many)
    page = written(model.with_fitted(fitted, flat=False), tmp_path)
    points = next(t for t in page.figures["output-0"]["data"] if t["meta"] == "observed")
    assert len(points["x"]) == 5000
    assert points["x"][-1] == 8
    assert len(page.data["shared"]["grid"]) == 2000
    assert "Of up to 12,000 observed values per output 5,000 are drawn" in page.text
    assert "Scored on 2,000 training rows" in page.text
    assert len(page.source) - len(get_plotlyjs()) < 1_000_000
