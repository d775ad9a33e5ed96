"""Parameters by name, in scikit-learn's way: fields of frozen settings are parameters too."""

from dataclasses import is_dataclass
from typing import Any, TypeVar

from deeplfm.errors import InputError
from deeplfm.regressor import conventions

_CONFIGS = ("model", "training")  # frozen settings whose fields are parameters too

Own = TypeVar("Own", bound="NestedSettings")


class NestedSettings:
    """`get_params` and `set_params` that reach into settings: `model__hidden_dim`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters; `deep` adds the fields of the settings, as `model__hidden_dim`.

        Not those that hold physics or a likelihood: torch modules cannot be compared by value, as
        scikit-learn does. They can be set all the same.
        """
        params: dict[str, Any] = super().get_params(deep=False)  # type: ignore[misc]
        configs = [name for name in _CONFIGS if deep and is_dataclass(params[name])]
        for name in configs:
            params |= {
                f"{name}__{key}": value
                for key, value in conventions.comparable(params[name]).items()
            }
        return params

    def set_params(self: Own, **params: Any) -> Own:
        """Set `params` by name; a nested one, as `model__hidden_dim`, makes new settings.

        Those of a model need a recipe: "auto" has no fields.
        """
        nested: dict[str, dict[str, Any]] = {}
        plain: dict[str, Any] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name in _CONFIGS and inner:
                nested.setdefault(name, {})[inner] = value
            else:
                plain[key] = value
        super().set_params(**plain)  # type: ignore[misc]
        for name, changes in nested.items():
            if isinstance(own := getattr(self, name), str):
                raise InputError(
                    f"{name} must be a recipe such as MarkovDLFM() before its fields can be set; "
                    f"got {own!r} and {sorted(changes)}. Pass {name}=MarkovDLFM(), say."
                )
            setattr(self, name, conventions.with_changes(name, own, changes))
        return self
