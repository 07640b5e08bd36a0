"""Saved games: what comes back, and what is refused."""

import random
import re
import zlib
from typing import Any, cast

import numpy as np
import pytest
from support import random_rules

from domino_env.saved import check_games
from domino_env.state import (
    GAME,
)
from domino_env.vector import DominoVec

FREE = {"random", "scores", "aside", "earned", "moves", "round_number", "unused"}


def played(rules: Any, seed: int, steps: int, games: int = 6, **fields: Any) -> DominoVec:
    """A batch after so many random steps."""
    vec, rng = DominoVec(games, rules, seed=seed, **fields), np.random.default_rng(seed)
    batch = vec.reset()
    for _ in range(steps):
        noise = rng.random(batch.mask.shape) * batch.mask
        batch = vec.step(noise.argmax(axis=1))
    return vec


def sealed(body: bytes) -> bytes:
    """Bytes with the checksum that they should have."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def refusal(games: np.ndarray, vec: DominoVec) -> str | None:
    """Why records are refused, None if they are not."""
    try:
        check_games(games, vec.rules)
    except ValueError as error:
        return str(error)
    return None


def refuses(vec: DominoVec, saved: Any, message: str) -> None:
    before = vec.save()
    with pytest.raises(ValueError, match=rf"^saved games: [^\n]*{message}[^\n]*$"):
        vec.load(saved)
    assert vec.save() == before


@pytest.mark.parametrize("seed", range(30))
def test_every_position_of_random_games_comes_back(seed: int) -> None:
    rng = random.Random(seed)
    rules, forced = random_rules(rng), cast(Any, rng.choice(["skip", "step"]))
    autoreset = rng.random() < 0.5
    vec = played(rules, seed, rng.randrange(60), forced=forced, autoreset=autoreset)
    other = DominoVec(6, rules, seed=0, forced=forced)
    try:
        other.load(vec.save())
    except ValueError as error:
        error.add_note(f"seed {seed}, {rules}, {forced=}, {autoreset=}")
        raise
    assert other.games.tobytes() == vec.games.tobytes()
    assert other.save() == vec.save()


def test_games_of_other_rules_another_number_or_none_at_all_are_refused() -> None:
    vec = played("cabra", 1, 20)
    refuses(vec, played("cabra", 1, 20, games=7).save(), "expected .* of 6 games")
    refuses(vec, played("estandar", 1, 20).save(), "double_pair differs from the rules")
    refuses(vec, played("cabra", 1, 20, set=7).save(), "differs from the rules")
    refuses(vec, played("cabra", 1, 20, hand_size=6).save(), "deal_size differs from the rules")
    refuses(vec, b"", "no games of this version")
    refuses(vec, b"PK\x03\x04" * 40, "no games of this version")
    refuses(vec, 5, "found int, expected bytes")
    refuses(vec, None, "found NoneType, expected bytes")
    refuses(vec, DominoVec(6, "cabra", seed=1).save(), "row 0 is no game")  # never dealt


def test_truncated_longer_and_damaged_bytes_are_refused() -> None:
    vec, rng = played("cabra", 2, 20), random.Random(2)
    saved = vec.save()
    for length in [*range(0, len(saved), 97), len(saved) - 1]:
        refuses(vec, saved[:length], "(no games of this version|bytes, expected)")
    refuses(vec, saved + b"\0", "bytes, expected")
    for _ in range(200):
        place = rng.randrange(len(saved))
        damaged = bytearray(saved)
        damaged[place] ^= 1 << rng.randrange(8)
        refuses(vec, bytes(damaged), "")


@pytest.mark.parametrize("name", [name for name in GAME.names or () if name not in FREE])
def test_a_record_that_no_moves_lead_to_is_refused_field_by_field(name: str) -> None:
    vec = played("cabra", 3, 33, seats=3, forced="step")
    refused = 0
    for change in (1, -1, 2, 77):
        games = vec.games.copy()
        flat = games[name][2].reshape(-1) if games[name].ndim > 1 else games[name][2:3]
        flat[0] = np.array(int(flat[0]) + change).astype(flat.dtype)  # wraps
        found = refusal(games, vec)
        refused += found is not None
        assert found is None or "row 2 is no game" in found or f"{name} differs" in found
    enough = {"asked": 2, "opened": 2, "next_leader": 2, "by_rule": 3}  # other values may be good
    assert refused >= enough.get(name, 4)


def test_a_tile_that_has_changed_hands_is_missed() -> None:
    vec = played("cabra", 3, 5, seats=3, forced="step")
    games = vec.games.copy()
    mine, other = int(games["hands"][1, 0]), int(games["hands"][1, 1])
    tile = mine & -mine
    games["hands"][1] = [mine ^ tile, other | tile, games["hands"][1, 2], 0]
    assert refusal(games, vec) == "saved games: row 1 is no game of these rules"


@pytest.mark.parametrize("seed", range(10))
def test_hostile_records_are_refused_or_can_be_played_on(seed: int) -> None:
    vec, rng = played("estandar", seed, 25, set=9, forced="step"), random.Random(seed)
    saved, accepted = vec.save(), 0
    start = saved.index(b"\n") + 1
    for _ in range(300):
        body = bytearray(saved[:-4])
        for _ in range(rng.choice([1, 1, 2, 8])):
            body[start + rng.randrange(6 * GAME.itemsize)] = rng.randrange(256)
        games = np.frombuffer(bytes(body[start:]), GAME, 6)
        found = refusal(games, vec)
        if found is not None:
            refuses(vec, sealed(bytes(body)), re.escape(found[13:]))
            continue
        accepted += 1
        other = DominoVec(6, "estandar", seed=0, set=9, forced="step")
        batch = other.load(sealed(bytes(body)))
        for _ in range(40):
            assert batch.mask.any(axis=1).all()
            batch = other.step(batch.mask.argmax(axis=1))
    assert accepted > 0  # the random state may be anything
