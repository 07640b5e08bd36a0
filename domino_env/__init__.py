"""The environment: dominoes for two to four seats and pairs, to train and compare agents in.

Names are imported from here: `from domino_env import DominoVec, Game, Rules, domino_v0`.
"""

from domino_env import domino_v0
from domino_env.errors import IllegalMove, RecordError
from domino_env.game import Game
from domino_env.observation import history_length, observation_layout
from domino_env.registration import register_all
from domino_env.rules import Rules, RulesError
from domino_env.vector import Batch, DominoVec

__all__ = [
    "Batch",
    "DominoVec",
    "Game",
    "IllegalMove",
    "RecordError",
    "Rules",
    "RulesError",
    "domino_v0",
    "history_length",
    "observation_layout",
]

register_all()
