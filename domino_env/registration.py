"""The names under which PettingZoo's and Gymnasium's `make` find the environments."""

import gymnasium
import pettingzoo

PETTINGZOO_ID = "domino/domino-v0"
GYMNASIUM_ID = "domino_env/Domino-v0"


def register_all() -> None:
    """Register `domino/domino-v0` with PettingZoo and `domino_env/Domino-v0` with Gymnasium.

    The environments themselves are imported by the first `make`. A second call does nothing.
    """
    if PETTINGZOO_ID not in pettingzoo.aec_registry:
        pettingzoo.register("aec", PETTINGZOO_ID, entry_point="domino_env.domino_v0:env")
    if GYMNASIUM_ID not in gymnasium.registry:
        gymnasium.register(GYMNASIUM_ID, entry_point="domino_env.solo:SoloEnv")
