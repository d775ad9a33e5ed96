"""Messages between processes: JSON and tensors there and back, errors as their sentences."""

import pickle

import pytest
import torch

from deeplfm.errors import InputError, NumericalError
from deeplfm.training.messages import error_as_message, error_of, packed, unpacked


def test_values_come_back_as_they_were() -> None:
    sent = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    value = {
        "none": None,
        "numbers": [1, -2.5, 0.1 + 0.2, float("inf"), True],
        "nested": {"tensor": "a word", "list": [], "mapping": {}, "ö": [{"x": 1}]},
        "tensors": {"a": sent},
    }
    found = unpacked(packed(value))
    tensors = found.pop("tensors")
    del value["tensors"]
    assert found == value
    assert torch.equal(tensors["a"], sent)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8])
def test_tensors_keep_their_type_and_shape(dtype: torch.dtype) -> None:
    for shape in [(), (0,), (3, 0, 2), (2, 2)]:
        sent = torch.ones(4, 4, dtype=dtype)[:2, :2].t().reshape(-1)[:1].expand(shape or (1,))
        sent = sent[0] if not shape else sent
        found = unpacked(packed([sent, torch.tensor([True, False])]))
        assert found[0].dtype == dtype
        assert torch.equal(found[0], sent)
        assert found[1].tolist() == [True, False]


def test_nothing_is_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle, "dumps", None)
    monkeypatch.setattr(pickle, "loads", None)
    assert unpacked(packed((1, torch.zeros(1))))[0] == 1
    with pytest.raises(TypeError, match="a message holds JSON and tensors; got a set"):
        packed({1})


def test_errors_arrive_as_what_they_are() -> None:
    for error in (InputError("x must be 1."), NumericalError("it broke."), OSError("no space")):
        found = error_of(error_as_message(error))
        assert type(found) is type(error)
        assert str(found) == str(error)
    assert type(error_of(error_as_message(PermissionError("no")))) is OSError
