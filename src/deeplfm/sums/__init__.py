"""SUMS: what a step spends its time on; one file each, with its contract and its candidates.

    total = bump_sum.by(backend, …)      the first candidate that the backend allows and that fits

Layers, objectives and models ask for sums; nobody outside this room imports `torch/`, `triton/`
or `c/`, which hold the candidates.
"""

from typing import Any

from deeplfm.sums.backend import FAMILIES, Backend, Family, fastest
from deeplfm.sums.bump_sum import bump_sum
from deeplfm.sums.bumps_at import bumps_at
from deeplfm.sums.candidate import Candidate, Sum, sum_of
from deeplfm.sums.force_response_sum import force_response_sum
from deeplfm.sums.fourier_sum import fourier_sum
from deeplfm.sums.frequency_kl import frequency_kl
from deeplfm.sums.gaussian_density import gaussian_density
from deeplfm.sums.markov_evidence import markov_evidence
from deeplfm.sums.markov_smooth import markov_smooth
from deeplfm.sums.matheron_draw import matheron_draw
from deeplfm.sums.plane_wave_sum import plane_wave_sum

SUMS: tuple[Sum[Any, Any], ...] = (
    fourier_sum,
    force_response_sum,
    bump_sum,
    plane_wave_sum,
    matheron_draw,
    bumps_at,
    gaussian_density,
    frequency_kl,
    markov_evidence,
    markov_smooth,
)

__all__ = [
    "FAMILIES",
    "SUMS",
    "Backend",
    "Candidate",
    "Family",
    "Sum",
    "bump_sum",
    "bumps_at",
    "fastest",
    "force_response_sum",
    "fourier_sum",
    "frequency_kl",
    "gaussian_density",
    "markov_evidence",
    "markov_smooth",
    "matheron_draw",
    "plane_wave_sum",
    "sum_of",
]
