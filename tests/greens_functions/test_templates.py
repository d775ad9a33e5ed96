"""What an ODE says of itself: whether it can match the data, and what makes it again."""

import torch

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction, Linear


def test_an_ode_says_whether_it_can_match_what_the_data_do() -> None:
    shape = (2, 3)
    frequency, damping = torch.full(shape, 7.0).double(), torch.full(shape, 0.5).double()
    resonator = dlfm.SecondOrder().tiled(*shape)
    assert resonator.match_oscillation(frequency, damping)
    torch.testing.assert_close(resonator.value("frequency"), frequency)
    torch.testing.assert_close(resonator.value("damping"), damping)
    quick = dlfm.FirstOrder().tiled(*shape)
    assert quick.match_decay(frequency)
    torch.testing.assert_close(quick.value("decay"), frequency)
    for other in (quick, dlfm.LinearODE([1.0, 2.0, 3.0]), dlfm.NoDynamics()):
        before = other.tiled(*shape).poles()
        assert not other.match_oscillation(frequency, damping)
        torch.testing.assert_close(other.tiled(*shape).poles(), before)
    assert not resonator.match_decay(frequency)


def test_arguments_are_those_that_the_constructor_takes() -> None:
    class Rate(GreensFunction):
        def __init__(self, rate: float = 2.0, *, learn: bool = True) -> None:
            super().__init__({"rate": rate}, learn=learn, normalised=True)

        @property
        def stable(self) -> bool:
            return True

        @property
        def factors(self) -> tuple[Linear]:
            return (Linear(self.value("rate")),)

    found = Rate(3.0, learn=False).arguments()
    assert sorted(found) == ["learn", "rate"]  # that it is normalised, the class decides
    assert found["rate"].item() == 3.0
    assert found["learn"] == []
    assert sorted(dlfm.FirstOrder().arguments()) == ["bounds", "decay", "learn", "normalised"]
