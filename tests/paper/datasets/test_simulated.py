"""Simulated sets: what they promise of variances, inputs, noise and truths."""

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.errors import InputError
from deeplfm.paper.datasets.linear_systems import driven_by_matern
from deeplfm.paper.datasets.simulated import driven, seven_channels, springs
from deeplfm.statespace import DrivenODE, known_response


def test_a_system_has_the_variance_that_the_library_says() -> None:
    """Two derivations of one covariance: a Lyapunov equation here, chains of poles there."""
    found = driven_by_matern([(4.0, 0.5), (1.44, 1.6)], lengthscale=0.7, std=1.3).stationary()
    ode = dlfm.SecondOrder(torch.tensor([[0.25], [0.8]]), torch.tensor([[2.0], [1.2]]))
    block = DrivenODE(
        ode.tiled(2, 1),
        torch.full((2, 1), 1.3).double(),
        torch.tensor([0.7]).double(),
        force=dlfm.Matern(2.5),
    )
    expected = block.outputs @ block.start() @ block.outputs.mT
    np.testing.assert_allclose(found[np.ix_([3, 5], [3, 5])], expected.detach(), rtol=1e-6)
    assert found[0, 0] == pytest.approx(1.3**2)


def test_an_answer_is_that_of_the_ode() -> None:
    system = driven_by_matern([(2.25, 0.8)], lengthscale=1.0, std=1.0)
    times = np.linspace(0, 14.7, 50)
    inputs = np.random.default_rng(0).normal(size=50)
    found = system.simulate(times, inputs, None)[:, 3]
    ode = dlfm.SecondOrder(damping=0.4, frequency=1.5).tiled(1, 1)
    values = torch.tensor(inputs)[:, None]
    expected = known_response(ode, torch.tensor(times), values, torch.tensor(times))
    np.testing.assert_allclose(found, expected[:, 0, 0].detach(), atol=1e-6)


def test_simulated_states_are_as_wide_as_they_should_be() -> None:
    system = driven_by_matern([(2.25, 0.8)], lengthscale=1.0, std=1.0)
    times = np.linspace(0, 9999.5, 20_000)
    state = system.simulate(times, 0 * times, np.random.default_rng(0))
    np.testing.assert_allclose(
        np.cov(state[:, [0, 3]].T), system.stationary()[:4:3, :4:3], rtol=0.1
    )


def test_springs_have_a_force_and_names_of_a_report() -> None:
    one, again, other = springs(0), springs(0), springs(1)
    np.testing.assert_array_equal(one.values, again.values)
    assert not np.allclose(one.values, other.values)
    assert one.values.shape == (150, 2)
    assert one.force.shape == (150,)
    assert len(one.truth) == 9
    assert one.times[-1] == 15


@pytest.mark.parametrize("system", ["first-order", "second-order"])
def test_a_known_input_carries_nine_tenths(system: str) -> None:
    one = driven(system, 0)
    assert one.truth["y: gain of u"] == 2.0
    assert len(one.times) == len(one.values) == len(one.inputs) == 400
    assert one.later[0] > one.times[-1]
    assert one.settled.sum() > 100
    ode: dlfm.FirstOrder | dlfm.SecondOrder = dlfm.FirstOrder(decay=0.8)
    if system == "second-order":
        ode = dlfm.SecondOrder(damping=0.4, frequency=1.5)
    every = np.concatenate([one.times, one.later])
    inputs = torch.tensor(np.concatenate([one.inputs, one.later_inputs]))[:, None]
    times = torch.tensor(every)
    answers = known_response(ode.tiled(1, 1), times, inputs, times)
    answer = 2 * answers[:, 0, 0].detach().numpy()
    np.testing.assert_allclose(one.answer, answer[400:], atol=1e-5)
    assert np.var(one.values - answer[:400]) / np.var(answer[:400]) == pytest.approx(
        1 / 9, rel=0.05
    )


def test_systems_have_names() -> None:
    with pytest.raises(InputError, match="first-order"):
        driven("third-order", 0)


def test_seven_channels_have_four_sources() -> None:
    one = seven_channels(0)
    assert one.truth is not None
    sizes = np.linalg.svd(one.truth, compute_uv=False)
    assert sizes[3] > 1e-3 * sizes[0]
    assert sizes[4] < 1e-9 * sizes[0]
    assert one.tests["ends"].sum(0).tolist() == [0, 0, 0, 0, 100, 100, 100]
    assert one.tests["ends"][-100:, 4:].all()
    noise = (one.values - one.truth).std(0) / one.truth.std(0)
    np.testing.assert_allclose(noise, 0.05, rtol=0.2)
