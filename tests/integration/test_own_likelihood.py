"""From outside the package: a likelihood is one class, that trains, predicts, saves and loads.

`docs/add_a_likelihood.md` explains what is done here: counts per day, whose rate swings.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.special import betainc, gammaincinv
from torch import Tensor

import deeplfm as dlfm
from deeplfm.data import Scaling
from deeplfm.data.stored import Stored
from deeplfm.evaluation import Support, metrics
from deeplfm.likelihoods import Likelihood
from deeplfm.plotting import plot_calibration, plot_predictions
from deeplfm.report import write_report
from deeplfm.variational.parameters import Quantity
from report.pages import Page


@dlfm.register
@final
class Poisson(Likelihood):
    """y ~ Poisson(e^f): counts, whose log rate is the function."""

    support = Support(low=0, whole=True)

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        return y * f - f.exp() - torch.lgamma(y + 1)

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        below: Tensor = torch.special.gammaincc(y + 1, f.exp())
        return below

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.poisson(f.exp(), generator)

    def mean(self, f: Tensor) -> Tensor:
        return f.exp()

    def variance(self, f: Tensor) -> Tensor:
        return f.exp()


@dlfm.register
@final
class NegativeBinomial(Likelihood):
    """Counts with mean e^f and variance e^f + e^{2f} / size; the size is learnt."""

    support = Support(low=0, whole=True)

    def __init__(self, size: Tensor | float = 10.0) -> None:
        super().__init__()
        self.size = Quantity("size", size)

    def arguments(self) -> dict[str, Any]:
        return {"size": self.size().detach()}

    def learnt(self, scaling: Scaling) -> dict[str, Any]:
        return {"size": self.size().detach().double().cpu().numpy()}

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        size: Tensor = self.size()
        chosen = torch.lgamma(y + size) - torch.lgamma(size) - torch.lgamma(y + 1)
        total = torch.logaddexp(f, size.log())
        return chosen + size * (size.log() - total) + y * (f - total)

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        size: Tensor = self.size()
        share = (size / (size + f.exp())).detach().double().cpu().numpy()
        at = y.double().cpu().numpy() + 1
        return torch.as_tensor(betainc(size.detach().double().cpu().numpy(), at, share)).to(f)

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        share = torch.rand(f.shape, generator=generator, dtype=torch.float64).numpy()
        size = self.size().detach().double().cpu().numpy()
        factor = torch.as_tensor(gammaincinv(size, share) / size)
        return torch.poisson(f.double().cpu().exp() * factor, generator).to(f)

    def mean(self, f: Tensor) -> Tensor:
        return f.exp()

    def variance(self, f: Tensor) -> Tensor:
        below: Tensor = f.exp() + (2 * f).exp() / self.size()
        return below


DAYS = np.arange(160.0)
SWING = 2 * np.pi * DAYS / 28
RATES = np.exp(np.stack([2.0 + 0.7 * np.sin(SWING), 4.0 + 0.5 * np.cos(SWING)], axis=1))
COUNTS = np.random.default_rng(0).poisson(RATES).astype(float)
COUNTS[50:58, 0] = np.nan
COUNTS[90:95, 1] = np.nan
RECIPES: dict[str, Any] = {
    "fourier": dlfm.FourierDLFM(num_features=20, hidden_dim=3, likelihood=Poisson()),
    "inducing": dlfm.InducingDLFM(num_inducing=30, num_basis=30, likelihood=Poisson()),
}
TRAINING = dlfm.Training(steps=60, num_samples=5)


def regressor(recipe: Any, training: dlfm.Training = TRAINING) -> dlfm.DeepLFMRegressor:
    return dlfm.DeepLFMRegressor(recipe, training, device="cpu", progress=False)


@pytest.fixture(scope="module", params=list(RECIPES))
def model(request: pytest.FixtureRequest) -> dlfm.DeepLFMRegressor:
    return regressor(RECIPES[request.param]).fit(DAYS, COUNTS)


@pytest.mark.parametrize("name", list(RECIPES))
def test_it_trains_and_starts_where_it_should(name: str) -> None:
    """From the prior the loss falls by more than its noise; the closed-form start is far below."""
    losses = [
        regressor(replace(RECIPES[name], weight_init=start), replace(TRAINING, steps=steps))
        .fit(DAYS, COUNTS)
        .history_["loss"]
        for start, steps in (("prior", 60), ("fitted", 1))
    ]
    assert losses[0][-10:].mean() < losses[0][:10].mean() - 50
    assert losses[1][0] < losses[0][:10].mean() - 500


def test_it_predicts_rates(model: dlfm.DeepLFMRegressor) -> None:
    mean, std = model.predict(DAYS, return_std=True)
    assert np.abs(mean / RATES - 1).mean() < 0.15
    assert (std > np.sqrt(0.8 * mean)).all()  # the noise of counts is in it, and more
    assert model.score(DAYS, COUNTS) > 0.7
    # Far from the data functions fall back to their typical values, which are those of the data.
    assert np.all((RATES.min(0) < model.predict([1e3])) & (model.predict([1e3]) < RATES.max(0)))


def test_samples_are_log_rates(model: dlfm.DeepLFMRegressor) -> None:
    p = model.predictive(DAYS, num_samples=20)
    np.testing.assert_allclose(p.expected_y, np.exp(p.samples), rtol=1e-12)
    np.testing.assert_allclose(p.samples, model.draw(20, seed=0)(DAYS), rtol=1e-12)
    last = model.hidden_functions(DAYS, layer=1, num_samples=20)
    np.testing.assert_allclose(last.samples, p.samples, rtol=1e-6)


def test_intervals_cover_what_they_should(model: dlfm.DeepLFMRegressor) -> None:
    """New counts at the true rates: intervals of whole numbers hold their share or more."""
    p = model.predictive(DAYS)
    new = np.random.default_rng(1).poisson(RATES, (100, *RATES.shape))
    for probability in (0.5, 0.9):
        lower, upper = p.interval(probability)
        inside = ((new >= lower) & (new <= upper)).mean((0, 1))
        assert (inside > probability - 0.05).all()
        assert (inside < probability + 0.2 * (1 - probability) + 0.1).all()
    pit = p.pit(new[0])
    assert scipy.stats.kstest(pit[:, 0], "uniform").statistic < 0.15
    assert metrics.mnll(COUNTS, p).shape == (2,)


def test_the_prediction_is_a_mixture_of_poissons(model: dlfm.DeepLFMRegressor) -> None:
    p = model.predictive(DAYS[::16], num_samples=30)
    y = COUNTS[::16].copy()
    y[2, 0] = np.nan
    parts: Any = scipy.stats.poisson(np.exp(p.samples))
    np.testing.assert_allclose(p.mean, parts.mean().mean(0))
    np.testing.assert_allclose(p.std**2, parts.var().mean(0) + parts.mean().var(0))
    density = np.log(parts.pmf(np.nan_to_num(y)).mean(0))
    np.testing.assert_allclose(p.log_density(y), np.where(np.isnan(y), np.nan, density), rtol=1e-9)
    np.testing.assert_allclose(p.cdf(y + 0.7), parts.cdf(y).mean(0), rtol=1e-9)
    for level in (0.001, 0.05, 0.5, 0.95):
        found = p.quantile(level)
        assert (parts.cdf(found).mean(0) >= level).all()
        assert (parts.cdf(found - 1).mean(0) < level).all()
        assert np.array_equal(found, np.floor(found))
    z = np.arange(600)[:, None, None, None]
    exact = ((parts.cdf(z).mean(1) - (np.nan_to_num(y) <= z[:, 0])) ** 2).sum(0)
    np.testing.assert_allclose(p.crps(y), np.where(np.isnan(y), np.nan, exact), rtol=1e-5)
    drawn = p.sample_y(seed=3)
    assert np.array_equal(drawn, np.floor(drawn))
    assert not np.array_equal(drawn, p.sample_y(seed=4))
    error = (drawn - parts.mean()) / parts.std()  # 600 of variance 1
    assert abs(error.mean()) < 5 / np.sqrt(error.size)


def test_what_is_no_count_has_no_density_and_is_refused(model: dlfm.DeepLFMRegressor) -> None:
    p = model.predictive(DAYS[:2], num_samples=5)
    assert p.log_density([[-1.0, 0.5], [3.0, 1e9]])[0].tolist() == [-np.inf, -np.inf]
    assert np.isfinite(p.log_density([[0.0, 1.0], [3.0, 20.0]])).all()
    assert p.cdf([[-1.0, -0.5], [0.0, 0.5]])[0].tolist() == [0.0, 0.0]
    for wrong in (-1.0, 2.5):
        y = COUNTS.copy()
        y[3, 1] = wrong
        sentence = (
            rf"targets of a Poisson likelihood must be whole numbers of 0 or more; got {wrong:g} "
            r"in 'y1', and 0 more like it\. Correct them, write NaN"
        )
        with pytest.raises(dlfm.InputError, match=sentence):
            regressor(RECIPES["fourier"]).fit(DAYS, y)


@pytest.mark.parametrize("name", list(RECIPES))
def test_restarts_held_out_blocks_and_mixtures(name: str) -> None:
    training = dlfm.Training(
        steps=10, num_samples=2, restarts=3, combine="mixture", held_out=0.1,
        objective="multi_sample",
    )  # fmt: skip
    several = regressor(RECIPES[name], training).fit(DAYS, COUNTS)
    assert len(several.fitted_.members) == 2
    p = several.predictive(DAYS, num_samples=7)
    parts = scipy.stats.poisson(np.exp(p.samples))
    np.testing.assert_allclose(
        p.log_density(COUNTS)[:9], np.log(parts.pmf(COUNTS).mean(0))[:9], rtol=1e-9
    )
    assert np.isfinite(several.score(DAYS, COUNTS))


def test_rows_from_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.column_stack([DAYS, COUNTS]))
    batches = replace(TRAINING, steps=3, batch_size=40)
    on_disk = Stored(tmp_path / "rows.npy", ["day"], ["a", "b"])
    found = regressor(RECIPES["fourier"], batches).fit_stored(on_disk).fitted_.scaling
    assert found.target_std.tolist() == [1, 1]
    np.testing.assert_allclose(found.function_mean, np.nanmean(np.log(COUNTS + 0.5), axis=0))


def test_the_report_and_the_pictures_show_counts(
    model: dlfm.DeepLFMRegressor, tmp_path: Path
) -> None:
    write_report(model, tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    assert "Poisson" in page.text
    assert "Noise, in the units" not in page.text  # there is none to learn
    assert "random point of its step" in page.text
    draws = [one for one in page.figures["output-1"]["data"] if one.get("meta") == "draws"]
    assert len(draws) == 5
    shown = np.array([one["y"] for one in draws], dtype=float)
    assert abs(shown.mean() / RATES[:, 1].mean() - 1) < 0.2  # rates, not their logarithms
    p = model.predictive(DAYS, num_samples=20)
    axes = plot_predictions(p, DAYS, observed=COUNTS, draws=2)
    drawn = [one for one in axes[0].lines if one.get_label() == "draws"]
    np.testing.assert_array_equal(drawn[0].get_ydata(), p.expected_y[0, :, 0])
    plot_calibration(p, COUNTS)


def test_a_likelihood_with_a_parameter_learns_it(tmp_path: Path) -> None:
    """Counts rougher than a Poisson for the first output: its size is found, and kept."""
    sizes = np.array([2.0, 500.0])
    counts = np.random.default_rng(2).negative_binomial(sizes, sizes / (sizes + RATES))
    training = replace(TRAINING, steps=150, learning_rate=0.03)
    recipe = replace(RECIPES["fourier"], likelihood=NegativeBinomial())
    rough = regressor(recipe, training).fit(DAYS, counts.astype(float))
    found = rough.fitted_.noise()["size"]
    assert 1 < found[0] < 4
    assert found[1] > 10 * found[0]
    p = rough.predictive(DAYS, num_samples=20)
    parts: Any = scipy.stats.nbinom(found, found / (found + np.exp(p.samples)))
    np.testing.assert_allclose(p.log_density(counts), np.log(parts.pmf(counts).mean(0)), rtol=1e-6)
    np.testing.assert_allclose(p.cdf(counts), parts.cdf(counts).mean(0), rtol=1e-6)
    np.testing.assert_allclose(p.std**2, parts.var().mean(0) + parts.mean().var(0), rtol=1e-6)
    rough.save(tmp_path / "run")
    again = dlfm.load(tmp_path / "run", device="cpu")
    assert again.fitted_.noise()["size"].tolist() == found.tolist()
    assert np.array_equal(again.predictive(DAYS).sample_y(), rough.predictive(DAYS).sample_y())
    write_report(again, tmp_path / "report.html")
    assert "size" in Page(tmp_path / "report.html").text


def test_saved_and_loaded_it_predicts_the_same(
    model: dlfm.DeepLFMRegressor, tmp_path: Path
) -> None:
    model.save(tmp_path / "run")
    again = dlfm.load(tmp_path / "run", device="cpu")
    assert type(again.fitted_.members[0].likelihood) is Poisson
    first, second = model.predictive(DAYS), again.predictive(DAYS)
    assert np.array_equal(first.samples, second.samples)
    assert np.array_equal(first.sample_y(), second.sample_y())
    assert np.array_equal(first.quantile(0.9), second.quantile(0.9))
    np.testing.assert_array_equal(first.log_density(COUNTS), second.log_density(COUNTS))
    members = again.fitted_.members[0].likelihood, model.fitted_.members[0].likelihood
    means = [member.function_mean for member in members]
    assert means[0] is not None
    assert means[1] is not None
    assert torch.equal(means[0], means[1])
