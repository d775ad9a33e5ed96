"""The two oracles of Markov states agree, and an oscillator is a dense block of two states."""

import pytest
import torch
from torch import Tensor

from markov_series import on_a_line, random_series, some_readout

from .markov import Answer, Series, covariances, dense, precise


def as_blocks(of: Series) -> Series:
    """The first oscillator, written as a dense block: a rotation that fades, and noise."""
    fade, turn = torch.exp(-of.decay[:, 0]), of.turn[:, 0]
    cosine, sine = fade * turn.cos(), fade * turn.sin()
    phi = torch.stack((torch.stack((cosine, -sine), 1), torch.stack((sine, cosine), 1)), 1)
    identity = torch.eye(2, dtype=phi.dtype)
    return of._replace(
        decay=of.decay[:, :0],
        turn=of.turn[:, :0],
        transition=phi,
        diffusion=(1 - fade**2)[:, None, None] * identity,
        start=identity,
    )


def numbers(answer: Answer) -> list[Tensor]:
    found = (answer.log_det, answer.gram, answer.mean, answer.variance)
    return [torch.as_tensor(part, dtype=torch.float64).flatten() for part in found]


def test_an_oscillator_is_a_block_of_two_states() -> None:
    of = random_series(1, 12, 3, 1, oscillators=1)
    blocks = as_blocks(of)
    z = some_readout(of)
    torch.testing.assert_close(covariances(of, 0, z), covariances(blocks, 0, z))
    for one, other in zip(numbers(dense(of, 0, z)), numbers(dense(blocks, 0, z)), strict=True):
        torch.testing.assert_close(one, other)


def test_a_lag_is_of_the_later_output() -> None:
    """Re(ā_1 a_2 e^{jωτ}) with a = (1, j) is -sin ωτ."""
    of = on_a_line([0.0], [0.7], [1.0, 1.0], 1.0)
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    found = covariances(of, 0, z)
    assert found[1, 0, 0, 0].item() == pytest.approx(torch.tensor(0.7).cos().item())
    assert found[1, 0, 0, 1].item() == pytest.approx(-torch.tensor(0.7).sin().item())
    assert found[0, 1, 1, 0].item() == found[1, 0, 0, 1].item()


@pytest.mark.parametrize(("oscillators", "states"), [(2, 0), (0, 2), (1, 2)])
def test_float64_agrees_with_fifty_digits(oscillators: int, states: int) -> None:
    of = random_series(1, 6, 2, 2, oscillators, states)
    z = some_readout(of, 1)
    answer = precise(of, z)
    flat = answer._replace(
        log_det=float(answer.log_det),
        gram=[[float(one) for one in row] for row in answer.gram],
        mean=[[float(one) for one in row] for row in answer.mean],
        variance=[float(one) for one in answer.variance],
    )
    for one, other in zip(numbers(dense(of, 0, z)), numbers(flat), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)
    assert answer.condition > 1
