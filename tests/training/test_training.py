"""The loop: it learns, repeats, resumes exactly, freezes, and stops clearly."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import files
from deeplfm.layers import InducingLayer
from deeplfm.models import DeepLFM, NoSkip
from deeplfm.objectives import Batch, elbo
from deeplfm.training import Stage, Trainer, Training
from deeplfm.training.loop import CHECK_EVERY
from deeplfm.training.optimiser import AdamW
from small_models import deep, deep_batch, noise_variance, shallow


def trained(steps: int, seed: int = 0, **options: Any) -> Trainer:
    trainer = Trainer(deep(), deep_batch(), Training(steps=steps, num_samples=2, **options), seed)
    trainer.run()
    return trainer


def equal_models(first: Trainer, second: Trainer) -> bool:
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def test_it_learns_the_evidence() -> None:
    """One layer, full q(W): training comes near the best bound, which is the evidence."""
    model, layer, batch = shallow("full", frequencies="prior_draws")
    for parameter in (*layer.parameter_groups()["hyperparameters"], *model.likelihood.parameters()):
        parameter.requires_grad_(False)
    layer.offset.requires_grad_(False)
    noise = noise_variance(model).item()
    with torch.no_grad():
        phi = layer.features(batch.x[None], layer.frequencies.draw(1))[0, :, 0].flatten(-2)
    covariance = phi @ phi.mT + noise * torch.eye(25, dtype=torch.float64)
    evidence = torch.distributions.MultivariateNormal(0 * batch.y[:, 0], covariance)
    best = evidence.log_prob(batch.y[:, 0]).item()
    trainer = Trainer(model, batch, Training(steps=300, learning_rate=0.05, num_samples=20), 0)
    trainer.run()
    losses = trainer.history()["loss"]
    assert -losses[:20].mean() < best - 30
    assert -losses[-50:].mean().item() == pytest.approx(best, abs=1.0)


@pytest.mark.parametrize("batch_size", [None, 5])
def test_the_same_seed_twice_is_bit_identical(batch_size: int | None) -> None:
    first, second = (trained(20, seed=3, batch_size=batch_size) for _ in range(2))
    assert equal_models(first, second)
    assert torch.equal(first.history()["loss"], second.history()["loss"])
    assert not equal_models(first, trained(20, seed=4, batch_size=batch_size))


@pytest.mark.parametrize("batch_size", [None, 5])
def test_resuming_is_bit_identical(tmp_path: Path, batch_size: int | None) -> None:
    stages = (
        Stage(0.25, 1, frozenset({"frequencies"})),
        Stage(0.6, 2, frozenset({"hyperparameters"})),
    )
    options: dict[str, Any] = {"batch_size": batch_size, "stages": stages}
    whole = trained(40, **options)
    part = Trainer(deep(), deep_batch(), Training(steps=40, num_samples=2, **options), 0)
    part.run(until=17)
    files.save_tensors(tmp_path / "state.safetensors", part.state())
    resumed = Trainer(deep(), deep_batch(), Training(steps=40, num_samples=2, **options), 99)
    resumed.restore(files.load_tensors(tmp_path / "state.safetensors"))
    assert resumed.step == 17
    resumed.run()
    assert equal_models(whole, resumed)
    for column, values in whole.history().items():
        if column == "seconds":
            continue
        assert torch.equal(values, resumed.history()[column]), column
    assert [path.name for path in tmp_path.iterdir()] == ["state.safetensors"]


def test_frozen_roles_do_not_move_until_their_stage_ends() -> None:
    stages = (Stage(0.5, 1, frozenset({"frequencies", "hyperparameters"})),)
    trainer = Trainer(deep(), deep_batch(), Training(steps=10, num_samples=2, stages=stages), 0)
    before = {role: [p.detach().clone() for p in ps] for role, ps in trainer.roles.items()}

    def moved(role: str) -> bool:
        pairs = zip(trainer.roles[role], before[role], strict=True)
        return any(not torch.equal(p, start) for p, start in pairs)

    trainer.run(until=5)
    assert moved("weights")
    assert moved("noise")
    assert not moved("frequencies")
    assert not moved("hyperparameters")
    trainer.run()
    assert moved("frequencies")
    assert moved("hyperparameters")


@pytest.mark.parametrize("local", [False, True])
def test_steps_sample_functions_or_values_as_asked(local: bool) -> None:
    """The loss of the first step is that of such a draw with the trainer's seed, no other."""
    settings = Training(steps=1, num_samples=3, local_reparameterisation=local)
    trainer = Trainer(deep(), deep_batch(), settings, 5)
    trainer.run()
    losses = {}
    for sampled in (False, True):
        path = deep().draw_for_training(3, torch.Generator().manual_seed(5), local=sampled)
        losses[sampled] = -elbo(deep(), deep_batch(), path).objective.item()
    assert trainer.history()["loss"].item() == pytest.approx(losses[local], rel=1e-6)
    assert losses[True] != pytest.approx(losses[False], rel=1e-3)


def test_a_parameter_the_user_fixed_stays_fixed() -> None:
    model = deep()
    (fixed,) = model.likelihood.parameters()
    fixed.requires_grad_(False)
    Trainer(model, deep_batch(), Training(steps=5, num_samples=1), 0).run()
    assert not fixed.requires_grad
    assert (fixed == 0).all()


def test_a_loss_that_is_not_finite_ends_with_the_last_good_state() -> None:
    batch = deep_batch()
    trainer = Trainer(deep(), batch, Training(steps=3 * CHECK_EVERY, num_samples=1), 0)
    trainer.run(until=CHECK_EVERY)
    good = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    bad = batch.y.clone()
    bad[0] = torch.inf
    trainer.data = Batch(batch.x, bad, torch.ones_like(batch.observed), batch.total)
    with pytest.raises(
        dlfm.NumericalError, match=r"loss must stay finite.*restored.*Try a smaller"
    ):
        trainer.run()
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, good[name])


def test_a_gram_matrix_that_fails_is_given_more_jitter(caplog: pytest.LogCaptureFixture) -> None:
    """Duplicate inducing points, no jitter to speak of: the loop goes back, raises it, goes on."""
    batch = deep_batch()
    layer = InducingLayer(
        batch.x.shape[1],
        batch.y.shape[1],
        greens_function=dlfm.FirstOrder(3.0),
        inducing_inputs=torch.zeros(6, batch.x.shape[1], dtype=torch.float64),
        num_basis=5,
        jitter=1e-19,
    )
    model = DeepLFM([layer], NoSkip(), dlfm.Gaussian(0.1).tiled(batch.y.shape[1]))
    trainer = Trainer(model, batch, Training(steps=60, num_samples=1), 0)
    with caplog.at_level(logging.WARNING, logger="deeplfm"):
        trainer.run()
    assert "raised to" in caplog.text
    assert trainer.step == len(trainer.history()["loss"]) == 60
    assert trainer.history()["loss"].isfinite().all()
    assert layer.posterior.jitter > 1e-19


def test_progress_is_reported() -> None:
    seen: list[tuple[int, float]] = []
    trainer = Trainer(deep(), deep_batch(), Training(steps=70, num_samples=1), 0)
    trainer.run(report=lambda step, loss: seen.append((step, loss)))
    assert [step for step, _ in seen] == list(range(1, 71))
    assert [loss for _, loss in seen] == trainer.history()["loss"].tolist()
    assert len(trainer.history()["kl"]) == 70


def test_rates_and_stages() -> None:
    training = Training(
        steps=100, learning_rate=0.1, warmup=0.04, stages=(Stage(0.1, 1), Stage(0.5, 3))
    )
    assert training.learning_rate_at(0) == pytest.approx(0.025)
    assert training.learning_rate_at(4) == pytest.approx(0.1, rel=5e-3)
    assert training.learning_rate_at(50) == pytest.approx(0.05)
    assert [training.stage(step).num_samples for step in (0, 9, 10, 49, 50)] == [1, 1, 3, 3, 5]


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input() -> None:
    with pytest.raises(dlfm.InputError, match="steps must be an integer of at least 1; got 0"):
        Training(steps=0)
    with pytest.raises(dlfm.InputError, match="learning_rate must be above 0"):
        Training(learning_rate=-1.0)
    with pytest.raises(dlfm.InputError, match="objective must be one of"):
        Training(objective="loss")  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError, match="stages must end one after the other"):
        Training(stages=(Stage(0.5, 1), Stage(0.2, 1)))
    with pytest.raises(dlfm.InputError, match="until must be a share"):
        Stage(1.5, 1)
    trainer = trained(1)
    model, _, batch = shallow("full")
    other = Trainer(model, batch, Training(steps=1), 0).state()
    with pytest.raises(dlfm.InputError, match="must be of the same model"):
        trainer.restore(other)


def test_the_optimiser_is_that_of_torch() -> None:
    """Rates that change, a parameter without a gradient, decay, a limit: to the last bit."""
    generator = torch.Generator().manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(3, 2, generator=generator)) for _ in range(3)]
    theirs = [torch.nn.Parameter(one.detach().clone()) for one in ours]
    mine = AdamW(ours, 0.01, 0.1)
    reference = torch.optim.AdamW(theirs, lr=0.01, weight_decay=0.1, fused=True)
    for step, (moved, limit) in enumerate([(1, None), (2, 1.0), (1, 100.0), (2, None), (1, 0.1)]):
        mine.set_rate(0.01 / (step + 1))
        reference.param_groups[0]["lr"] = 0.01 / (step + 1)
        for one, other in zip(ours[:moved], theirs, strict=False):
            one.grad = torch.randn(3, 2, generator=generator)
            other.grad = one.grad.clone()
        if limit is not None:
            torch.nn.utils.clip_grad_norm_(theirs, limit)
        mine.step(limit)
        reference.step()
        mine.forget_gradients()
        reference.zero_grad()
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)
    known = {f"{k}.{n}": v for k, p in enumerate(theirs) for n, v in reference.state[p].items()}
    found = mine.state()
    assert found.keys() == known.keys()
    assert all(torch.equal(found[name], known[name]) for name in known)
    again = AdamW(ours, 0.01, 0.1)
    ours[2].grad = torch.ones(3, 2)
    again.step()  # what it knew is forgotten
    again.load(found)
    assert again.state().keys() == known.keys()
    assert all(torch.equal(again.state()[name], known[name]) for name in known)
