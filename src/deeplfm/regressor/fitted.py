"""A fitted model: draws, predictions and what is hidden in it, in the user's units.

    f = fitted.draw(5);  fitted.predictive(X);  fitted.summary(X);  fitted.latent_forces(X)

One model, or a mixture of several. Points are evaluated in chunks of bounded memory, with the same
draws throughout.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.evaluation.spread import about_mean
from deeplfm.models import DeepLFM
from deeplfm.models.deep_lfm import DeepPath
from deeplfm.regressor.base import Fitted, Functions, Summary
from deeplfm.shapes import check_count

Values = NDArray[np.float64]

APART = 1_000_003  # between the seeds of two starts
_CHUNK = 2**22  # numbers of one kind that a prediction holds at a time; more leave the cache


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(Fitted):
    """Trained members of a mixture of layered models (one, mostly)."""

    members: tuple[DeepLFM, ...]

    @property
    def num_parameters(self) -> int:
        return sum(part.numel() for part in self.members[0].parameters())

    @property
    def place(self) -> tuple[str, str]:
        like = next(self.members[0].parameters())
        return str(like.device), str(like.dtype).removeprefix("torch.")

    @property
    def num_members(self) -> int:
        return len(self.members)

    @property
    def hidden_width(self) -> int:
        return max(layer.num_outputs for layer in self.members[0].stack)

    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Functions: f(X) is [S, N, D], the same ones wherever and however often evaluated."""
        draws = self._draws(num_samples, seed)

        def functions(X: Any) -> Values:
            chunks = [values for _, values in self._chunks(draws, self._inputs(X))]
            drawn = self.scaling.functions(np.concatenate(chunks, axis=1))
            factor = self.factor_at(X)
            return drawn if factor is None else about_mean(drawn, drawn.mean(0), factor)

        return functions

    def predictive(self, X: Any, num_samples: int = 200, seed: int | None = None) -> Predictive:
        """The mixture over `num_samples` functions with the noise; the fit's seed by default."""
        draws = self._draws(num_samples, seed)
        chunks = [values for _, values in self._chunks(draws, self._inputs(X))]
        found = self._mixture(draws, np.concatenate(chunks, axis=1), seed)
        factor = self.factor_at(X)
        return found if factor is None else found.widened(factor)

    def summary(
        self,
        X: Any,
        levels: Sequence[float] = (),
        num_samples: int = 200,
        seed: int | None = None,
    ) -> Summary:
        """Mean, standard deviation and quantiles of `predictive`, in memory that X alone needs."""
        draws, x = self._draws(num_samples, seed), self._inputs(X)
        mean = np.empty((len(x), len(self.output_names)))
        std = np.empty_like(mean)
        quantiles = {level: np.empty_like(mean) for level in levels}
        factor = self.factor_at(X)
        for rows, values in self._chunks(draws, x):
            chunk = self._mixture(draws, values, seed)
            chunk = chunk if factor is None else chunk.widened(factor[rows])
            mean[rows], std[rows] = chunk.mean, chunk.std
            for level, column in quantiles.items():
                column[rows] = chunk.quantile(level)
        return Summary(mean, std, quantiles)

    def latent_forces(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """The forces that drive a layer, at `X`, without noise; `.names` says which they are.

        Forces of a deeper layer are functions of its inputs: they are taken where the functions
        below lead from `X`.
        """
        self._check_layer(layer)

        def forces(member: DeepLFM, path: DeepPath, x: torch.Tensor) -> torch.Tensor:
            return member.stack[layer].forces(path.inputs(x, layer), path.paths[layer])

        return self._hidden(X, forces, self.force_names(layer), num_samples, seed)

    def hidden_functions(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """What a layer hands on to the next, at `X`: no noise, and no units but for the last."""
        self._check_layer(layer)
        last, names = layer == len(self.members[0].stack) - 1, self.function_names(layer)

        def outputs(member: DeepLFM, path: DeepPath, x: torch.Tensor) -> torch.Tensor:
            return path.values(x, layer)

        found = self._hidden(X, outputs, names, num_samples, seed)
        if not last:
            return found
        samples, factor = self.scaling.functions(found.samples), self.factor_at(X)
        if factor is not None:
            samples = about_mean(samples, samples.mean(0), factor)
        return Predictive.without_noise(samples, names, found.seed)

    def function_names(self, layer: int) -> tuple[str, ...]:
        """The names of what a layer makes: those of the outputs for the last one."""
        stack = self.members[0].stack
        if layer == len(stack) - 1:
            return self.output_names
        return tuple(f"hidden {k}" for k in range(stack[layer].num_outputs))

    def force_names(self, layer: int) -> tuple[str, ...]:
        """The names of the forces that drive a layer; none where no force does."""
        kind = self.members[0].stack[layer]
        return kind.force_names(self.function_names(layer), self.names_below(layer))

    def names_below(self, layer: int) -> tuple[str, ...]:
        """The names of what a layer sees: hidden functions, then the inputs that re-enter."""
        if layer == 0:
            return self.input_names
        seen = (*self.function_names(layer - 1), *self.input_names)
        return seen[: self.members[0].stack[layer].num_inputs]

    def noise(self) -> Mapping[str, Values]:
        """What was learnt of the noise of each output, [D] by name: the mean over the members."""
        found = [member.likelihood.learnt(self.scaling) for member in self.members]
        return {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}

    def _hidden(
        self,
        X: Any,
        evaluate: "Evaluate",
        names: tuple[str, ...],
        num_samples: int,
        seed: int | None,
    ) -> Predictive:
        draws = self._draws(num_samples, seed)
        chunks = [values for _, values in self._chunks(draws, self._inputs(X), evaluate)]
        samples = np.concatenate(chunks, axis=1)
        return Predictive.without_noise(samples, names, self.seed if seed is None else seed)

    def _check_layer(self, layer: int) -> None:
        depth = len(self.members[0].layers)
        if not 0 <= layer < depth:
            raise InputError(f"layer must be 0 to {depth - 1}; got {layer}. Choose one of them.")

    def _draws(self, num_samples: int, seed: int | None) -> "list[Draw]":
        """Samples shared out evenly over the members."""
        check_count("num_samples", num_samples)
        start = self.seed if seed is None else seed
        draws = []
        for k, member in enumerate(self.members):
            count = (num_samples + k) // len(self.members)
            if count:
                # Of the CPU: a saved model predicts the same on every device.
                generator = torch.Generator().manual_seed(start + APART * k)
                with torch.no_grad():
                    draws.append((member, member.draw(count, generator, self.training.backend)))
        return draws

    def _chunks(
        self, draws: "list[Draw]", x: Values, evaluate: "Evaluate | None" = None
    ) -> Iterator[tuple[slice, Values]]:
        """The values [S, n, ...] of all draws over chunks of `x`, so that memory stays bounded."""
        evaluate = evaluate or _value
        total = sum(path.num_samples for _, path in draws)
        widest = max(layer.elements for layer in self.members[0].stack)
        size = max(1, _CHUNK // (total * widest))
        for start in range(0, len(x), size):
            rows = slice(start, min(start + size, len(x)))
            values = []
            for member, path in draws:
                like = next(member.parameters())
                with torch.no_grad():
                    found = evaluate(member, path, torch.tensor(x[rows]).to(like))
                values.append(as_numpy(found))
            yield rows, np.concatenate(values)

    def _mixture(self, draws: "list[Draw]", values: Values, seed: int | None) -> Predictive:
        """The mixture of all members, each with the noise of its own."""
        samples = self.scaling.functions(values)
        ends = np.cumsum([path.num_samples for _, path in draws])[:-1]
        first, *others = (
            member.likelihood.components(functions, self.scaling)
            for (member, _), functions in zip(draws, np.split(samples, ends), strict=True)
        )
        start = self.seed if seed is None else seed
        return Predictive(samples, first.followed_by(others), self.output_names, start)

    def _inputs(self, X: Any) -> Values:
        return self.scaling.inputs(self.near(X))


Draw = tuple[DeepLFM, DeepPath]
Evaluate = Callable[[DeepLFM, DeepPath, torch.Tensor], torch.Tensor]


def _value(member: DeepLFM, path: DeepPath, x: torch.Tensor) -> torch.Tensor:
    return path(x)


def as_numpy(values: torch.Tensor) -> Values:
    """Numbers of any type and device as float64."""
    return values.detach().double().cpu().numpy()
