"""The response of an ODE to a drawn force: still a function, and exact.

    y_{dq}(x) = Σ_i a_{qi} Re( e^{jβ_{qi}} Π_p wave_{dp}(x_p; θ_{qip}) )
              + Σ_j c_{qj} Π_p bump_{dp}(x_p; z_{qjp})

The phase enters once, outside the product over inputs. The paper's appendix A.1 has it
inside, once per input: its draws are then not those of the prior.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.forces import ForcePath
from deeplfm.greens_functions import Dynamics
from deeplfm.responses.systems import system_bump_response, system_wave_response
from deeplfm.shapes import Memory


def path_response(
    greens_function: Dynamics,
    path: ForcePath,
    x: Float[Tensor, "*S N P"],
    memory: Memory = "infinite",
) -> Float[Tensor, "S N D Q"]:
    """Each output of `greens_function` (parameters () or [D, P]) driven by each force, at `x`."""
    shape, inputs = greens_function.poles().shape[:-1], path.theta.shape[-1]
    if len(shape) == 2 and shape[1] != inputs:
        raise InputError(
            f"the Green's function must have parameters () or [D, {inputs}] for a path over "
            f"{inputs} inputs; got {list(shape)}. Give it one column per input."
        )
    x = path.inputs(x)[:, :, None, :, None, None]  # dimensions: S N D P Q (B or M)
    theta = path.theta.permute(0, 3, 1, 2)[:, None, None]
    waves = system_wave_response(greens_function, x, theta, memory, trailing=2).prod(-3)
    shifted = waves * torch.polar(torch.ones_like(path.phase), path.phase)[:, None, None]
    response = torch.einsum("sndqb,sqb->sndq", shifted.real, path.amplitude)
    if path.centers.shape[1] == 0:
        return response
    centers, ell = path.centers.permute(2, 0, 1), path.lengthscale.mT[:, :, None]
    for weight, scale in path.mixture:
        bumps = system_bump_response(greens_function, x, centers, scale * ell, memory, trailing=2)
        coefficients = weight * path.coefficients
        response = response + torch.einsum("sndqm,sqm->sndq", bumps.prod(-3), coefficients)
    return response
