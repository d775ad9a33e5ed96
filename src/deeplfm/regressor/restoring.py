"""Numbers of a file put back into a model, or one sentence that says why they do not fit."""

from pathlib import Path

from torch import Tensor, nn

from deeplfm.errors import InputError


def restore(member: nn.Module, state: dict[str, Tensor], path: Path) -> None:
    """Load a state that was read from `path`."""
    try:
        member.load_state_dict(state)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"{path} must hold the numbers of the model that its settings make; it does not "
            f"({reason}). Use the classes and the version of deeplfm that wrote it."
        ) from None


def part_of(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin so, without the beginning."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
