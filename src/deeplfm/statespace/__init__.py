"""MARKOV STATES: the meeting of an ODE and its force as a state that steps through time.

    z(t + Δ) = Φ(Δ) z(t) + noise Q(Δ),   Var z = P at the first time,   f = h·z

Blocks say Φ, Q and P exactly for any Δ; sums filter and smooth them.
"""

from deeplfm.statespace.blocks import Block, Moves, stack_blocks
from deeplfm.statespace.driven import DrivenODE
from deeplfm.statespace.known import Hold, known_response
from deeplfm.statespace.levels import IntegratedWalk, Level, RandomWalk
from deeplfm.statespace.record import Record
from deeplfm.statespace.system import Observations, System

__all__ = [
    "Block",
    "DrivenODE",
    "Hold",
    "IntegratedWalk",
    "Level",
    "Moves",
    "Observations",
    "RandomWalk",
    "Record",
    "System",
    "known_response",
    "stack_blocks",
]
