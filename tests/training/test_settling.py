"""The last way to the most probable parameters: no slope is left, and nothing gets worse."""

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.models.markov_model import MarkovModel
from deeplfm.paper.datasets.simulated import springs
from deeplfm.statespace import Record
from deeplfm.training.laplace import flat_parameters
from deeplfm.training.robust import noise_scale
from deeplfm.training.settling import settle
from markov_records import KINDS, small_model, small_record


def log_density(model: MarkovModel, record: Record) -> torch.Tensor:
    cut = record.whole()
    return model.evidence(record, cut, None, noise_scale(model, record, cut)) + model.log_prior()


@pytest.mark.parametrize("kind", ["levels and slopes", "one ODE", "an ODE per output"])
def test_no_slope_is_left(kind: str) -> None:
    record = small_record(trend=kind.startswith("levels"), known=kind == "one ODE")
    model = small_model(record, **KINDS[kind])
    before = float(log_density(model, record).detach())
    settle(model, record)
    raw = [raw.value for raw in model.raw()]
    after = log_density(model, record)
    slopes = torch.autograd.grad(after, raw, allow_unused=True)
    assert after.item() > before
    assert max(float(slope.abs().max()) for slope in slopes if slope is not None) < 0.1


def test_noise_with_heavy_tails_settles_too() -> None:
    record = small_record()
    model = small_model(record, modes=0, likelihood=dlfm.StudentT(0.05))
    before = float(log_density(model, record).detach())
    settle(model, record)
    assert float(log_density(model, record).detach()) > before


def test_a_model_without_parameters_stays() -> None:
    record = small_record()
    fixed = dlfm.Gaussian(0.1, learn=False)
    model = dlfm.MarkovDLFM(modes=0, level=False, likelihood=fixed).build(
        record, torch.Generator().manual_seed(0)
    )
    settle(model, record)
    assert not model.raw()


@pytest.mark.parametrize("ends", [False, True])
def test_where_steps_lead_down_it_stays(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_way(self: torch.optim.LBFGS, closure: object) -> None:
        for group in self.param_groups:
            for part in group["params"]:
                part.data.add_(9.0)
        if ends:
            raise torch.linalg.LinAlgError  # type: ignore[attr-defined]

    record = small_record()
    model = small_model(record, **KINDS["one ODE"])
    before = flat_parameters(model)
    monkeypatch.setattr(torch.optim.LBFGS, "step", wrong_way)
    settle(model, record)
    assert torch.equal(flat_parameters(model), before)


def test_physics_of_the_user_is_settled_and_a_bank_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[MarkovModel] = []
    monkeypatch.setattr(
        "deeplfm.regressor.markov_rehearsal.settle", lambda model, *_: settled.append(model)
    )
    t = np.linspace(0, 5, 40)
    for recipe in (dlfm.MarkovDLFM(modes=2), dlfm.MarkovDLFM(greens_function=dlfm.FirstOrder(1.0))):
        dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=2), check=False, progress=False).fit(
            t, np.sin(t)
        )
    assert [model.bank for model in settled] == [None]


def test_small_noise_is_found_from_far_away() -> None:
    """Adam alone leaves the noise of 2 % at half as much again."""
    simulated = springs(0)
    template = dlfm.SecondOrder(damping=0.5, frequency=1.5)
    recipe = dlfm.MarkovDLFM(greens_function=template, level=False)
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=100), progress=False)
    model.fit(simulated.times, simulated.values)
    found = model.fitted_.physics(0)[0].numbers()
    for d in range(2):
        name = f"y{d}: noise, standard deviation"
        assert found[name] == pytest.approx(simulated.truth[name], rel=0.2)
    for name in ("damping", "frequency"):
        for d in range(2):
            assert found[f"y{d}: {name}"] == pytest.approx(
                simulated.truth[f"y{d}: {name}"], rel=0.1
            )
