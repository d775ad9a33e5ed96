"""From outside the package: a new ODE is one class, that trains, predicts, saves and loads.

`docs/own_ode.md` explains what is done here.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction, Linear, Quadratic
from deeplfm.regressor import learnt
from deeplfm.report import write_report


@dlfm.register
@final
class LaggedOscillator(GreensFunction):
    """(d/dt + 1/lag)(d²/dt² + 2·damping·d/dt + frequency²) y = u: a lag before an oscillator."""

    def __init__(
        self,
        lag: Tensor | float = 0.5,
        damping: Tensor | float = 0.2,
        frequency: Tensor | float = 3.0,
    ) -> None:
        super().__init__({"lag": lag, "damping": damping, "frequency": frequency})

    @property
    def stable(self) -> bool:
        return True  # all three are positive, and stay so

    @property
    def factors(self) -> tuple[Linear, Quadratic]:
        damping, squared = self.value("damping"), self.value("frequency") ** 2
        oscillator = Quadratic(damping, damping**2 - squared, squared)
        return Linear(1 / self.value("lag")), oscillator

    def inverse_times(self, name: str) -> int:
        return -1 if name == "lag" else 1  # the lag is a time, the others are rates


T = np.linspace(0, 20, 80)
Y = np.stack([np.sin(3 * T), np.cos(3 * T + 0.4)], axis=1)
Y[30:38, 0] = np.nan
FAR = np.linspace(-1, 22, 37)
FOURIER = dlfm.FourierDLFM(greens_function=LaggedOscillator(), num_features=12, hidden_dim=2)
INDUCING = dlfm.InducingDLFM(
    greens_function=[LaggedOscillator(), dlfm.FirstOrder(1.0)],
    num_inducing=12,
    grid_points=30,
    num_basis=12,
    hidden_dim=2,
)
RECIPES = pytest.mark.parametrize("recipe", [FOURIER, INDUCING], ids=["Fourier", "inducing"])


def fitted(recipe: Any, **training: Any) -> dlfm.DeepLFMRegressor:
    settings = dlfm.Training(**{"steps": 15, "num_samples": 2} | training)
    return dlfm.DeepLFMRegressor(recipe, settings, device="cpu", progress=False).fit(T, Y)


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)


def test_it_is_the_ode_that_it_says() -> None:
    """Its coefficients, multiplied out by numpy, make the same Green's function."""
    own = LaggedOscillator(0.25, 0.3, 5.0)
    coefficients = np.polymul([1, 4], [1, 0.6, 25])[:0:-1].tolist()
    t = torch.linspace(-1, 6, 50, dtype=torch.float64)
    torch.testing.assert_close(own(t), dlfm.LinearODE(coefficients)(t), rtol=1e-9, atol=1e-12)


@RECIPES
def test_it_trains_in_both_models(recipe: Any) -> None:
    model = fitted(recipe)
    first = model.fitted_.members[0].stack[0].greens_function
    assert type(first) is LaggedOscillator
    untrained = fitted(recipe, steps=1, learning_rate=1e-12)
    before = untrained.fitted_.members[0].stack[0].greens_function
    for name in ("lag", "damping", "frequency"):
        assert not torch.equal(first.value(name), before.value(name)), name
    loss = model.history_["loss"]
    assert np.isfinite(loss).all()
    assert loss[-3:].mean() < loss[:3].mean()
    assert np.isfinite(model.predictive(FAR).std).all()
    assert model.latent_forces(FAR).samples.shape[1] == len(FAR)


@RECIPES
def test_what_was_learnt_is_in_the_units_of_the_user(recipe: Any) -> None:
    """A lag is a time and a frequency a rate: in both, units come out as they went in."""
    one = dlfm.InducingDLFM if recipe is INDUCING else dlfm.FourierDLFM
    shallow = one(num_layers=1, greens_function=LaggedOscillator(0.25, 0.3, 5.0))
    model = fitted(shallow, steps=1, learning_rate=1e-12)
    found = learnt.responses(model)[0]
    expected = LaggedOscillator(0.25, 0.3, 5.0).poles().detach().tolist()
    assert sorted(found.poles, key=by_parts) == pytest.approx(sorted(expected, key=by_parts), 1e-5)
    assert "swings with a period of 1.26" in found.in_words()


def by_parts(pole: complex) -> tuple[float, float]:
    return round(pole.real, 3), pole.imag


@RECIPES
def test_saved_and_loaded_it_predicts_the_same(recipe: Any, tmp_path: Path) -> None:
    model = fitted(recipe)
    model.save(tmp_path / "run")
    again = dlfm.load(tmp_path / "run", device="cpu")
    assert np.array_equal(again.predictive(FAR).samples, model.predictive(FAR).samples)
    template = again.get_params(deep=False)["model"].greens_function
    template = template[0] if recipe is INDUCING else template
    assert type(template) is LaggedOscillator
    assert template.arguments() == recipe_arguments(recipe)


def recipe_arguments(recipe: Any) -> dict[str, Tensor]:
    given = recipe.greens_function
    arguments: dict[str, Tensor] = (given[0] if recipe is INDUCING else given).arguments()
    assert sorted(arguments) == ["damping", "frequency", "lag"]
    return arguments


def test_where_its_class_is_not_registered_loading_says_what_to_do(tmp_path: Path) -> None:
    model = fitted(FOURIER, steps=1)
    model.save(tmp_path / "run")
    load = "import sys, deeplfm; model = deeplfm.load(sys.argv[1], device='cpu')"
    refused = run(load, tmp_path / "run")
    assert refused.returncode == 1
    sentence = refused.stderr.strip().splitlines()[-1]
    assert sentence.startswith("deeplfm.errors.InputError: the file must name registered classes")
    assert "'LaggedOscillator' is not among" in sentence
    assert "import the module that defines this class with @deeplfm.register" in sentence
    # The command line says the same, as bad input.
    shown = run("from deeplfm.app.cli import main; main()", "report", tmp_path / "run")
    assert shown.returncode == 2
    assert "'LaggedOscillator' is not among" in shown.stderr
    assert "Traceback" not in shown.stderr
    # With the module imported first it loads in a new process too.
    code = f"import {Path(__file__).stem}; {load}; print(repr(model.predict([1.5]).tolist()))"
    loaded = run(code, tmp_path / "run")
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip() == repr(model.predict([1.5]).tolist())


def test_a_class_that_is_not_registered_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    class Forgotten(LaggedOscillator):  # type: ignore[misc]
        pass

    model = fitted(dlfm.FourierDLFM(greens_function=Forgotten(), num_features=3), steps=1)
    with pytest.raises(dlfm.InputError, match=r"Forgotten. Put @deeplfm.register above the class"):
        model.save(tmp_path / "run")


def test_the_report_shows_it(tmp_path: Path) -> None:
    write_report(fitted(FOURIER, steps=1), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "LaggedOscillator(lag=0.5, damping=0.2, frequency=3)" in text
