"""Prints a line for each of some random games: a digest of all that the engine made of it.

A program of its own, which test_compiled.py runs compiled and as plain Python.
"""

import hashlib
import random
import sys

import numpy as np
from support import (
    history_of,
    mask_of,
    observed,
    random_rules,
    redacted,
    state_of,
)

from domino_env import engine
from domino_env.rules import Rules


def fingerprint(seed: int) -> str:
    """The digest of one random game under random rules: records and everything seen."""
    rng = random.Random(seed)
    rules = Rules.from_dict(random_rules(rng))
    games = engine.new_games(rules, rng.getrandbits(64))
    digest = hashlib.sha256()
    engine.reset(games[0])
    while True:
        g, seat = games[0], rng.randrange(rules.seats)
        legal = [a for a in range(rules.actions) if engine.is_legal(g, a)]
        numbers = [int(engine.only_move(g)), int(engine.drawable(g)), *legal]
        digest.update(np.array(numbers).tobytes() + games.tobytes())
        digest.update(observed(games, rules, seat, 4).tobytes() + mask_of(games, rules).tobytes())
        digest.update(state_of(games, rules, seat, rules.seats).tobytes())
        digest.update(history_of(games, rules, seat).tobytes() + redacted(games, seat).tobytes())
        if int(g.over) != engine.NOT_OVER:
            return f"{seed} {int(g.moves)} {digest.hexdigest()}"
        engine.advance(g, rng.choice(legal))
        if rng.random() < 0.2:
            engine.skip_forced(games, 0, games.copy())


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        print(fingerprint(number))
