"""RESPONSES: where physics and forces meet, in closed forms that own no parameters."""

from deeplfm.responses.bumps import bump_response
from deeplfm.responses.paths import path_response
from deeplfm.responses.quadrature import quadrature
from deeplfm.responses.systems import system_bump_response, system_wave_response
from deeplfm.responses.waves import wave_response

__all__ = [
    "bump_response",
    "path_response",
    "quadrature",
    "system_bump_response",
    "system_wave_response",
    "wave_response",
]
