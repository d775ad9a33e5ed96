"""Checkpoints: the states of one fit in a folder, which knows what it is a fit of.

    checkpoints = Checkpoints(folder, {"data": …, "seed": …, "settings": …, "version": …})
    checkpoints.of("rehearsal").save("evidence", tensors)

A state of other data, another seed or other settings is refused: it would be the answer to another
question. Only the first of several processes calls what is here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from torch import Tensor

from deeplfm.data import files
from deeplfm.errors import InputError

ENDING = ".safetensors"
_OLD = ("race.json", "evidence" + ENDING)  # what older versions left


@final
@dataclass(frozen=True)
class Checkpoints:
    """A folder for states of the fit that `fit` describes, part by part, in words."""

    folder: Path
    fit: Mapping[str, str] = field(default_factory=dict)
    part: str = ""  # which of the trainings of the fit

    def of(self, part: str) -> "Checkpoints":
        """Those of a training within the fit, in a folder of its own."""
        if not part:
            return self
        return replace(self, folder=self.folder / part, part=f"{self.part}/{part}")

    def save(self, name: str, tensors: Mapping[str, Tensor], **said: Any) -> None:
        """A state, in place of the one before it, whole or not at all."""
        about = {"fit": dict(self.fit), "part": self.part, "said": said}
        files.save_state(self._path(name), tensors, about)

    def load(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last state and what was said with it, if there is one."""
        path = self._path(name)
        found = files.load_state(path)
        if found is None:
            self._check_none_is_older()
            return None
        tensors, about = found
        with files.understood(path):
            theirs, said = dict(about["fit"]), dict(about["said"])
            same_part = about["part"] == self.part
        names = [*self.fit, *(one for one in theirs if one not in self.fit)]
        other = [one for one in names if self.fit.get(one) != theirs.get(one)]
        if other or not same_part:
            raise InputError(
                f"checkpoints must be of the fit that goes on; {path} is of one with other "
                f"{' and '.join(other) or 'parts'}. Choose another folder, or remove this one."
            )
        return tensors, said

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    def _check_none_is_older(self) -> None:
        for name in _OLD:
            if (self.folder / name).exists():
                raise InputError(
                    f"checkpoints must be of this version of deeplfm; {self.folder / name} is of "
                    "an older one. Choose another folder, or remove this one."
                )
