"""Games as bytes, and the check of bytes that come back.

Compiled code has no bounds checks, so a record from outside is trusted only when its round can be
dealt and played again, event by event, and ends where the record stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

from domino_env.compiled import jit
from domino_env.engine import begin, is_legal, move
from domino_env.rules import Rules
from domino_env.state import (
    GAME,
    MAX_EVENTS,
    MAX_SEATS,
    NOBODY,
    NOT_OVER,
    PLAYING,
    TRUNCATED,
    Record,
    new_games,
)

# Another layout of the record has another first line.
_HEADER = b"domino games %08x\n" % zlib.crc32(repr(GAME.descr).encode())
_BYTES = np.dtype((np.void, GAME.itemsize))  # a record as NumPy copies it fast
_CHECKSUM = 4  # bytes at the end, CRC-32 of all before
_MANY = 1 << 30  # of points and moves: adding to less does not overflow
# What a round played again does not tell; `_is_loose_sound` looks at these.
_LOOSE = {"random", "scores", "aside", "earned", "moves", "round_number", "opened", "over"}
_LOOSE |= {"next_leader", "asked"}


def copied(games: np.ndarray) -> np.ndarray:
    """A copy of records, GAME [B], as a plain array.

    NumPy copies records field by field: 260 nanoseconds each, and 20 for their bytes.
    """
    return games.view(_BYTES, np.ndarray).copy().view(GAME)


def pack(games: np.ndarray, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The records and some arrays beside them as bytes, for `unpack`."""
    body = _HEADER + games.tobytes() + b"".join(array.tobytes() for array in arrays.values())
    return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")


def unpack(
    saved: bytes, rules: Rules, count: int, like: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """`count` games of `rules`, and arrays of the shapes and dtypes of `like`, from `pack`.

    Raises `ValueError` of one line if the bytes are no such games.
    """
    if not isinstance(saved, bytes | bytearray | memoryview):
        raise ValueError(f"saved games: found {type(saved).__name__}, expected bytes")
    saved = bytes(saved)
    if not saved.startswith(_HEADER):
        raise ValueError("saved games: these are no games of this version of the program")
    size = len(_HEADER) + count * GAME.itemsize + sum(a.nbytes for a in like.values()) + _CHECKSUM
    if len(saved) != size:
        raise ValueError(f"saved games: found {len(saved)} bytes, expected {size} of {count} games")
    body, checksum = saved[:-_CHECKSUM], saved[-_CHECKSUM:]
    if zlib.crc32(body) != int.from_bytes(checksum, "little"):
        raise ValueError("saved games: the checksum differs, so the bytes have been damaged")
    offset = len(_HEADER) + count * GAME.itemsize
    games = np.frombuffer(body, GAME, count, len(_HEADER)).copy()
    check_games(games, rules)
    arrays = {}
    for name, array in like.items():
        found = np.frombuffer(body, array.dtype, array.size, offset)
        arrays[name] = found.reshape(array.shape).copy()
        offset += array.nbytes
    return games, arrays


def check_games(games: np.ndarray, rules: Rules) -> None:
    """Raise `ValueError` where a record is no game of these rules that moves have led to."""
    probe = new_games(rules, 0)
    for name in ("tiles", "deal_size", *rules.codes()):
        if name != "hand_size" and not (games[name] == probe[name]).all():
            raise ValueError(f"saved games: {name} differs from the rules of this batch")
    again = games.copy()
    good = _is_loose_sound(games, rules) & _is_in_range(games, rules)
    good[good] = replay_each(again, np.flatnonzero(good))
    for name in set(GAME.names or ()) - _LOOSE:
        same = again[name] == games[name]
        good &= same.reshape(len(games), -1).all(axis=1)
    if not good.all():
        raise ValueError(f"saved games: row {int(np.argmin(good))} is no game of these rules")


def _is_loose_sound(games: np.ndarray, rules: Rules) -> np.ndarray:
    """bool [B]: what no replay tells has values that a game can have."""
    good = (games["random"] != 0).any(axis=1) & (games["opened"] <= 1).all(axis=1)
    for name in ("scores", "aside"):
        good &= ((games[name] >= 0) & (games[name] < _MANY)).all(axis=1)
    good &= ((games["earned"] > -_MANY) & (games["earned"] < _MANY)).all(axis=1)
    good &= (games["moves"] >= 0) & (games["moves"] < _MANY)
    good &= (games["round_number"] >= 0) & (games["round_number"] < rules.max_rounds)
    good &= (games["next_leader"] >= NOBODY) & (games["next_leader"] < rules.seats)
    good &= (games["asked"] >= 0) & (games["asked"] <= 1)
    good &= (games["over"] >= NOT_OVER) & (games["over"] <= TRUNCATED)
    return good & ((games["over"] == NOT_OVER) == (games["end"] == PLAYING))


def _is_in_range(games: np.ndarray, rules: Rules) -> np.ndarray:
    """bool [B]: what the replay needs to keep within its arrays, and every tile once."""
    boneyard = games["boneyard"][:, : rules.stock]
    good = ((boneyard >= 0) & (boneyard < rules.tiles)).all(axis=1)
    good &= games["stock"] == rules.stock
    good &= (games["drawn"] >= 0) & (games["drawn"] <= rules.stock)
    good &= (games["event_count"] >= 0) & (games["event_count"] <= MAX_EVENTS)
    good &= (games["leader"] >= 0) & (games["leader"] < rules.seats)
    good &= (games["by_rule"] >= 0) & (games["by_rule"] <= 1)
    undrawn = np.arange(rules.stock) >= games["drawn"][:, None]
    tiles = 1 << np.clip(boneyard, 0, rules.tiles).astype(np.int64)
    sets = np.hstack([games["hands"], games["placed"], np.where(undrawn, tiles, 0)])
    whole = (1 << rules.tiles) - 1
    good &= ((sets >= 0) & (sets <= whole)).all(axis=1)
    good &= np.bitwise_count(sets).sum(axis=1) == rules.tiles
    return good & (np.bitwise_or.reduce(sets, axis=1) == whole)


@jit
def replay_each(games: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Deal and play the rounds of some rows again, in place; bool [rows], whether that went."""
    good = np.zeros(len(rows), np.bool_)
    source = games[:1].copy()
    for k in range(len(rows)):
        source[0] = games[rows[k]]
        good[k] = replay(source[0], games[rows[k]])
    return good


@jit
def replay(source: Record, g: Record) -> bool:
    """Bring `g`, a copy of `source`, back to its deal and make the moves of its events."""
    undo(source, g)
    for p in range(MAX_SEATS):
        size = 0
        for t in range(int(g.tiles)):
            size += int(g.hands[p]) >> t & 1
        if size != (int(g.deal_size) if p < int(g.seats) else 0):
            return False
    g.next_leader = NOBODY if int(source.by_rule) == 1 else int(source.leader)
    g.over = NOT_OVER
    begin(g, int(source.leader))
    for k in range(int(source.event_count)):
        event = int(source.events[k])
        if int(g.seat) != event >> 7 & 3 or not try_move(g, event & 127):
            return False
        for _ in range(event >> 9):
            if not try_move(g, 2 * int(g.tiles) + 1):
                return False
    return True


@jit
def undo(source: Record, g: Record) -> None:
    """Give the tiles on the table and those drawn back, so that the hands are as dealt."""
    for p in range(MAX_SEATS):
        g.hands[p] = int(source.hands[p]) | int(source.placed[p])
    drawn = 0
    for k in range(int(source.event_count)):
        event = int(source.events[k])
        if event & 127 == 2 * int(source.tiles) and drawn < int(source.stock):
            seat = event >> 7 & 3
            g.hands[seat] = int(g.hands[seat]) & ~(1 << int(source.boneyard[drawn]))
            drawn += 1
    for k in range(MAX_EVENTS):
        g.events[k] = 0


@jit
def try_move(g: Record, action: int) -> bool:
    """Make a move if it is legal, and say whether it was."""
    if not is_legal(g, action):
        return False
    move(g, action)
    return True
