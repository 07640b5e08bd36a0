"""New games, and given deals in the place of a shuffled one (RULES.md 3, 4)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from domino_env import engine
from domino_env.errors import shown
from domino_env.rules import Rules, RulesError
from domino_env.tiles import bits_of, parse_tile, tile_text

Tiles = str | Sequence[str]  # "6-5 4-4" or ["6-5", "4-4"]


def new_game(rules: Rules, seed: int | None) -> np.recarray:
    """A game [1] of a seed, by chance without one, before its first deal.

    Raises `ValueError` on a seed that is no integer from 0.
    """
    if seed is None:
        seed = secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed: found {shown(seed)}, expected an integer of at least 0")
    return engine.new_games(rules, np.array([int(seed) % 2**64], np.uint64))


def set_deal(
    games: np.recarray,
    i: int,
    rules: Rules,
    hands: Sequence[Tiles],
    boneyard: Tiles,
    leader: int | None = None,
    *,
    later: bool = False,
) -> None:
    """Begin an episode of game i with a given deal, or, `later`, the next round of its match.

    `boneyard` is in drawing order. `leader` is for `lead: random`, elsewhere it must agree; without
    it the leader that the shuffle has drawn stays. The shuffle that the deal replaces is made, so
    the rounds behind are those that the seed gives. Raises `RulesError` before anything changes.
    """
    dealt, stock = _checked_deal(rules, hands, boneyard)
    if leader is not None:
        _check_seat("leader", leader, rules.seats)
    work = games[i : i + 1].copy().view(np.recarray)
    g = work[0]
    if later:
        engine.next_round(g)
    else:
        engine.reset(g)
    g.hands[: rules.seats] = [bits_of(hand) for hand in dealt]
    g.boneyard[: rules.stock] = stock
    engine.begin(g, int(g.leader if leader is None else leader))
    if leader is not None and leader != int(g.leader):
        raise RulesError(f"leader: found seat {leader}, expected seat {g.leader} by the rules")
    games[i] = g


def _checked_deal(
    rules: Rules, hands: Sequence[Tiles], boneyard: Tiles
) -> tuple[list[list[int]], list[int]]:
    """The tile numbers of each hand and of the boneyard, or `RulesError`."""
    if not isinstance(hands, list | tuple):
        raise RulesError(f"hands: {shown(hands)} is no list, expected one hand a seat")
    if len(hands) != rules.seats:
        raise RulesError(f"hands: found {len(hands)}, expected {rules.seats}, one a seat")
    dealt = [_parsed(f"hand of seat {p}", hand, rules.set) for p, hand in enumerate(hands)]
    stock = _parsed("boneyard", boneyard, rules.set)
    counts = np.bincount([t for tiles in (*dealt, stock) for t in tiles], minlength=rules.tiles)
    for t, count in enumerate(counts):
        if count > 1:
            raise RulesError(f"deal: found {tile_text(t)} {count} times, expected every tile once")
        if count == 0:
            raise RulesError(f"deal: {tile_text(t)} is neither in a hand nor in the boneyard")
    for p, hand in enumerate(dealt):
        if len(hand) != rules.hand_size:
            tiles = f"{len(hand)} tiles" if len(hand) != 1 else "1 tile"
            raise RulesError(f"hand of seat {p}: found {tiles}, expected {rules.hand_size}")
    return dealt, stock


def _parsed(name: str, tiles: Tiles, set_: int) -> list[int]:
    words = tiles.split() if isinstance(tiles, str) else tiles
    if not isinstance(words, list | tuple):
        raise RulesError(f"{name}: {shown(tiles)} is no text, expected tiles like '{set_}-0 1-1'")
    try:
        return [parse_tile(word if _is_short(word) else shown(word), set_) for word in words]
    except ValueError as error:
        raise RulesError(f"{name}: {error}") from None


def _is_short(word: object) -> bool:
    return isinstance(word, str) and len(word) <= 8


def _check_seat(name: str, seat: object, seats: int) -> None:
    if isinstance(seat, bool) or not isinstance(seat, int | np.integer):
        raise RulesError(f"{name}: {shown(seat)} is no integer, expected 0 to {seats - 1}")
    if not 0 <= seat < seats:
        raise RulesError(f"{name}: there is no seat {shown(int(seat))}, expected 0 to {seats - 1}")
