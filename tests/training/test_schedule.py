"""Schedules: the paper's numbers, typed from its appendix; rates and stages step by step."""

import math

import pytest

from deeplfm.errors import InputError
from deeplfm.training import Stage, Training

ALL_BUT_WEIGHTS = frozenset({"frequencies", "hyperparameters"})


def test_the_papers_schedule() -> None:
    """Its words: a learning rate of 0.01; 1 Monte Carlo sample for the first 100 iterations, then
    100; variational parameters of Ω fixed for 200 iterations, hyperparameters for 300.
    """
    training = Training.paper()
    assert training.steps == 2000
    assert {training.learning_rate_at(step) for step in range(2000)} == {0.01}
    for step in range(2000):
        stage = training.stage(step)
        assert stage.num_samples == (1 if step < 100 else 100)
        assert ("frequencies" in stage.frozen) == (step < 200)
        assert ("hyperparameters" in stage.frozen) == (step < 300)
        assert not stage.frozen & {"weights", "noise"}
        assert stage.objective is None
    assert training.objective == "elbo"
    assert training.gradient_norm is None
    assert training.weight_decay == 0
    assert training.batch_size is None  # "a minibatch size equal to the size of the training data"
    assert training.restarts == 1
    assert training.held_out == 0


@pytest.mark.parametrize(
    ("steps", "ends"),
    [(100_000, (100, 200, 300)), (2000, (100, 200, 300)), (200, (10, 20, 30))],
)
def test_stages_of_the_paper_are_as_long_however_long_the_training(
    steps: int, ends: tuple[int, int, int]
) -> None:
    """A longer training has the same stages, a shorter one shares of them."""
    training = Training.paper(steps)
    expected: list[tuple[int, set[str] | frozenset[str]]] = [
        (1, ALL_BUT_WEIGHTS), (100, ALL_BUT_WEIGHTS), (100, {"hyperparameters"}), (100, set())
    ]  # fmt: skip
    starts = (0, *ends)
    for first, (samples, frozen) in zip(starts, expected, strict=True):
        assert training.stage(first).num_samples == samples
        assert training.stage(first).frozen == frozen
    for end, (samples, frozen) in zip(ends, expected, strict=False):
        assert training.stage(end - 1).num_samples == samples
        assert training.stage(end - 1).frozen == frozen


@pytest.mark.parametrize("rate", ["cosine", "constant"])
def test_the_rate_of_every_step(rate: str) -> None:
    """It rises in a line over the warm-up; a cosine then takes it from its height to nothing."""
    training = Training(steps=200, learning_rate=0.3, warmup=0.1, rate=rate)  # type: ignore[arg-type]
    for step in range(200):
        expected = 0.3 * ((step + 1) / 20 if step < 20 else 1.0)
        if rate == "cosine":
            expected *= math.cos(math.pi * step / 400) ** 2  # (1 + cos 2a) / 2 = cos² a
        assert training.learning_rate_at(step) == pytest.approx(expected, rel=1e-12)
    sudden = Training(steps=200, learning_rate=0.3, warmup=0.0, rate="constant")
    assert sudden.learning_rate_at(0) == 0.3


def test_a_stage_holds_until_its_share_of_the_steps() -> None:
    stages = (Stage(0.25, 7, frozenset({"weights"}), "multi_sample"), Stage(0.5, 3))
    training = Training(steps=8, num_samples=11, stages=stages)
    found = [training.stage(step) for step in range(8)]
    assert found[:2] == [stages[0]] * 2
    assert found[2:4] == [stages[1]] * 2
    assert found[4:] == [Stage(1.0, 11)] * 4


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": "linear"}, "rate must be one of"),
        ({"combine": "all"}, "combine must be one of"),
        ({"backend": "fast"}, "backend must be one of"),
        ({"learning_rate": math.inf}, "learning_rate must be above 0"),
        ({"warmup": 1.0}, r"warmup must be a share in \[0, 1\)"),
        ({"held_out": -0.1}, r"held_out must be a share in \[0, 1\)"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"checkpoint_every": 0}, "checkpoint_every must be"),
        ({"restarts": 0}, "restarts must be"),
        ({"num_samples": 0}, "num_samples must be"),
    ],
)
def test_bad_settings(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Training(**wrong)  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_stages() -> None:
    with pytest.raises(InputError, match=r"frozen must name roles among .*; got \['speed'\]"):
        Stage(0.5, 1, frozenset({"speed"}))
    with pytest.raises(InputError, match="num_samples must be"):
        Stage(0.5, 0)
    with pytest.raises(InputError, match=r"until must be a share of the steps in \(0, 1\]; got 0"):
        Stage(0.0, 1)
    with pytest.raises(InputError, match="objective must be one of"):
        Stage(0.5, 1, objective="loss")  # type: ignore[arg-type]
