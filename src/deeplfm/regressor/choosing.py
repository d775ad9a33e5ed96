"""Which recipe is fitted: the one that was given or, with "auto", one that suits the data.

    recipe, training = choice("auto", Training(), data)     # one input: MarkovDLFM()

The choice looks at sizes alone, never at values: folds of a search are fitted with one recipe.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeAlias

from deeplfm.data import Dataset
from deeplfm.data.stored import Stored
from deeplfm.errors import InputError
from deeplfm.models import MarkovDLFM, ModelSettings, Recipe
from deeplfm.models.automatic import recipe_for_table
from deeplfm.regressor.fitting import check_plain
from deeplfm.regressor.markov_fitting import check_training
from deeplfm.training import Training
from deeplfm.training.automatic import training_for_table

AUTO = "auto"


@dataclass(frozen=True)
class Size:
    """The size of data that are not read yet."""

    rows: int
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __len__(self) -> int:
        return self.rows


Sized: TypeAlias = Dataset | Stored | Size


def check_model(model: Any, training: Any) -> None:
    """It is an error if these are no settings, or not for each other."""
    if not isinstance(model, (Recipe, MarkovDLFM)) and not is_auto(model):
        raise _no_model(model)
    if not isinstance(training, Training):
        raise InputError(
            f"training must be settings such as Training(steps=300); got {training!r}. "
            "Pass an instance."
        )
    if isinstance(model, MarkovDLFM):
        check_training(training)


def is_auto(model: ModelSettings | str) -> bool:
    """Whether the data choose."""
    return isinstance(model, str) and model == AUTO


def is_markov(model: ModelSettings | str, inputs: int) -> bool:
    """Whether so many inputs are fitted with a state-space model."""
    return isinstance(model, MarkovDLFM) or (is_auto(model) and inputs == 1)


class Choice(NamedTuple):
    """What is fitted, and how it is trained."""

    recipe: MarkovDLFM | Recipe
    training: Training


def choice(model: ModelSettings | str, training: Training, data: Sized) -> Choice:
    """What `data` are fitted with; what that cannot use is an error.

    With "auto" a table is trained as suits its recipe, where `training` is left at its defaults.
    """
    if is_auto(model):
        return _chosen(training, data)
    if isinstance(model, Recipe):
        check_plain(data)
        return Choice(model, training)
    if isinstance(model, MarkovDLFM):
        return Choice(model, training)
    raise _no_model(model)


def _chosen(training: Training, data: Sized) -> Choice:
    inputs, outputs = len(data.input_names), len(data.output_names)
    if inputs == 1:
        _check_series_training(training)
        return Choice(MarkovDLFM(), training)
    if isinstance(data, Dataset) and data.panel is not None:
        raise InputError(
            f"X must be one input, the time, where series is given; got {inputs}. "
            "Pass the others as known, or leave series out."
        )
    suited = training_for_table(len(data))
    left = {
        one.name: getattr(suited, one.name)
        for one in fields(training)
        if getattr(training, one.name) == one.default
    }
    return Choice(recipe_for_table(len(data), inputs, outputs), replace(training, **left))


def _check_series_training(training: Training) -> None:
    """What a state-space model would refuse, said of a model that the user did not name."""
    for name, unused in (("restarts", 1), ("held_out", 0.0), ("batch_size", None)):
        if getattr(training, name) != unused:
            raise InputError(
                f'training must have {name}={unused} with model="{AUTO}" and one input, which a '
                f"MarkovDLFM fits exactly; got {getattr(training, name)!r}. Leave it out, or pass "
                "model=FourierDLFM()."
            )


def _no_model(model: Any) -> InputError:
    return InputError(
        f'model must be "{AUTO}", or settings such as MarkovDLFM() or FourierDLFM(); got '
        f"{model!r}. Pass one of them."
    )
